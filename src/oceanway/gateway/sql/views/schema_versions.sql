-- Purpose: which migrations this schema has, as the installer's check asks, so that every process can refuse one that it
-- does not know.
create view gateway.schema_versions as
select m.number, m.name, m.phase, m.checksum, m.applied_at, m.release, m.finished_at
from gateway.schema_migration as m;
