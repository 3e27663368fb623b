-- Purpose: the events as the specification describes them (STO-05), with published_at (PUB-01). What is not a column of
-- the table is read from the envelope itself.
create view seapost.outbox_events as
select e.event_id, e.event_type, e.schema_version,
       v.delivery_set_version,
       v.definition_schema_version as delivery_set_definition_schema_version,
       v.digest_algorithm_version as delivery_set_definition_digest_algorithm_version,
       encode(v.definition_digest, 'hex') as delivery_set_definition_digest,
       d.document ->> 'producer' as producer,
       e.aggregate_kind, e.aggregate_id, e.aggregate_revision,
       d.document #>> '{tenant,tenantKind}' as tenant_kind,
       d.document #>> '{tenant,tenantId}' as tenant_id,
       d.document #>> '{tenant,workspaceId}' as workspace_id,
       d.document #>> '{tenant,projectId}' as project_id,
       d.document #>> '{correlation,correlationId}' as correlation_id,
       d.document #>> '{correlation,causationId}' as causation_id,
       d.document #>> '{correlation,operationId}' as operation_id,
       d.document #>> '{correlation,traceparent}' as traceparent,
       d.document -> 'payload' as event_payload,
       e.envelope as event_envelope,
       'jcs-sha256-v1'::text as event_envelope_digest_algorithm_version,
       encode(e.digest, 'hex') as event_envelope_sha256,
       e.occurred_at, e.created_at, e.mandatory_count, p.published_at
from seapost.event as e
join seapost.delivery_set_version as v on v.definition_id = e.definition_id
cross join lateral (select convert_from(e.envelope, 'UTF8')::jsonb as document) as d
left join seapost.publication as p on p.event_id = e.event_id;
