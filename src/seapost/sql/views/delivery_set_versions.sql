-- Purpose: the registered delivery set definitions with their complete quad (STO-06).
create view seapost.delivery_set_versions as
select v.delivery_set_version,
       v.definition_schema_version as delivery_set_definition_schema_version,
       v.digest_algorithm_version as delivery_set_definition_digest_algorithm_version,
       encode(v.definition_digest, 'hex') as delivery_set_definition_digest,
       v.status, v.registered_at, v.activated_at, v.source_release, v.candidate, v.definition_id
from seapost.delivery_set_version as v;
