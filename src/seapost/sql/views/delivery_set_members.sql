-- Purpose: the lines of every definition (STO-07), with the quad each belongs to.
create view seapost.delivery_set_members as
select v.delivery_set_version, m.event_type, m.schema_version, m.destination, m.consumer_name, m.mandatory,
       m.expected_receipt_type, m.expected_receipt_schema_version,
       case when m.projection_name is null then 'not_applicable' else 'required' end as projection_target_state,
       m.projection_name, m.projection_version, m.member_id,
       v.definition_schema_version as delivery_set_definition_schema_version,
       v.digest_algorithm_version as delivery_set_definition_digest_algorithm_version,
       encode(v.definition_digest, 'hex') as delivery_set_definition_digest, v.status
from seapost.delivery_set_member as m
join seapost.delivery_set_version as v on v.definition_id = m.definition_id;
