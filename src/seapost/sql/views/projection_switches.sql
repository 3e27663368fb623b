-- Purpose: the switch that is under way, if any, and those that ended, of every projection.
create view seapost.projection_switches as
select c.projection_name, c.token, c.from_version, c.to_version, c.phase, c.started_at, c.phase_at as moved_at, c.actor,
       c.delivery_set_version, c.producers, c.activated, encode(sha256(c.candidate), 'hex') as candidate_sha256
from seapost.projection_cutover as c
union all
select s.projection_name, s.token, s.from_version, s.to_version, s.outcome, null, s.ended_at, s.actor, null, null, null,
       encode(sha256(s.candidate), 'hex')
from seapost.projection_switch as s;
