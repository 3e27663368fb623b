-- Purpose: what stands before and after the event in the canonical candidate of a member's ConsumerReceipt@1; between them are
-- the event's digest in hexadecimal, `","eventId":"` and its id. A candidate of just these bytes is a receipt that
-- delivery_receipt_matches accepts, and need not be read; about any other one nothing is said. With a projection: null.
-- One expression without a search_path setting, every name qualified: only so does the planner fold it into its caller.
-- Locks: none.
-- Errors: none.
create or replace function seapost.delivery_usual_receipt(
    p_destination text, p_consumer_name text, p_projection_name text, p_event_type text, p_schema_version text
)
returns text[]
language sql
stable
as $$
    select array[
        case when p_projection_name is null then pg_catalog.concat(
            '{"consumerName":', pg_catalog.to_json(p_consumer_name),
            ',"consumerReceiptDigestAlgorithmVersion":"jcs-sha256-v1","consumerReceiptSchemaVersion":"1","destination":',
            pg_catalog.to_json(p_destination),
            ',"eventEnvelopeDigestAlgorithmVersion":"jcs-sha256-v1","eventEnvelopeSha256":"') end,
        pg_catalog.concat(
            '","eventSchemaVersion":', pg_catalog.to_json(p_schema_version),
            ',"eventType":', pg_catalog.to_json(p_event_type), ',"outcome":"applied"}')]
$$;
