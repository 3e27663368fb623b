-- Purpose: which event announces which fact: one of each type for each fact (AMB-41, NEG-50).

create table execution.event_source (
    event_type text collate "C" not null,
    source_fact_key text collate "C" not null,
    event_id uuid not null unique references seapost.event (event_id) deferrable initially deferred,
    event_envelope_sha256 text collate "C" not null check (event_envelope_sha256 ~ '^[0-9a-f]{64}$'),
    primary key (event_type, source_fact_key)
);

create trigger event_source_immutable before update or delete on execution.event_source
    for each row execute function execution.guard_reject_change();
