-- Purpose: the source of every projection of this database, without the envelopes: events appended here, and events of other
-- databases that were accepted here (AMB-39).
create view seapost.source_events as
select e.event_id, e.event_type, e.schema_version, e.aggregate_kind, e.aggregate_id, e.aggregate_revision, e.digest,
       'event' as source_kind
from seapost.event as e
union all
select a.event_id, a.event_type, a.schema_version, a.aggregate_kind, a.aggregate_id, a.aggregate_revision, a.digest,
       'accepted_event' as source_kind
from seapost.accepted_event as a;
