-- Purpose: the guard level of this database: one row.
create view seapost.guard_levels as
select g.level, g.changed_at from seapost.guard_level as g;
