-- Purpose: the settings of destinations that differ from the default of one lane, as set_fair_lanes_v1 left them.
create view seapost.destination_settings as
select s.destination, s.fair_lanes, s.lanes_claimed, s.changed_at from seapost.destination_setting as s;
