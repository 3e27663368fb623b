-- Purpose: whether a receipt speaks of exactly this event, destination, consumer and projection (PUB-06, DLV-07, SET-11).
-- What is expected comes from the event and the frozen member, never from the receipt.
-- One expression without a search_path setting, every name qualified: only so does the planner fold it into its caller.
-- Locks: none.
-- Errors: none.
create or replace function seapost.delivery_receipt_matches(
    p_receipt jsonb, p_event_id uuid, p_event_digest bytea, p_destination text, p_consumer_name text,
    p_projection_name text, p_projection_version text
)
returns boolean
language sql
immutable
as $$
    select p_receipt ->> 'eventId' = p_event_id::text
       and p_receipt ->> 'eventEnvelopeSha256' = pg_catalog.encode(p_event_digest, 'hex')
       and p_receipt ->> 'eventEnvelopeDigestAlgorithmVersion' = 'jcs-sha256-v1'
       and p_receipt ->> 'destination' = p_destination
       and p_receipt ->> 'consumerName' = p_consumer_name
       and p_receipt ->> 'projectionName' is not distinct from p_projection_name
       and p_receipt ->> 'projectionVersion' is not distinct from p_projection_version
$$;
