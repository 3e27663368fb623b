-- Purpose: the proofs that were made, with their manifests.
create view seapost.completeness_snapshots as
select c.snapshot_id, c.evaluated_at, c.projection_name, c.projection_version, c.result,
       encode(c.manifest_digest, 'hex') as manifest_sha256, encode(c.candidate_digest, 'hex') as candidate_sha256,
       convert_from(c.manifest, 'UTF8')::jsonb as manifest
from seapost.completeness_snapshot as c;
