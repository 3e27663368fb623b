-- Purpose: nobody changes a fact, by trigger; that nobody may is said a second time by the grants (STO-28, SEC-03).
-- The trigger functions stand here and not among the replaceable functions because the triggers need them at once.

create function seapost.refuse_change() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using
        errcode = 'SP020',
        message = format('%s of %s is forbidden', lower(tg_op), tg_table_name),
        detail = 'stored facts are never changed or deleted';
end $$;

create function seapost.forward_status() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if (new.definition_id, new.delivery_set_version, new.definition_schema_version, new.digest_algorithm_version,
        new.registered_at, new.source_release, new.candidate)
       is distinct from
       (old.definition_id, old.delivery_set_version, old.definition_schema_version, old.digest_algorithm_version,
        old.registered_at, old.source_release, old.candidate) then
        raise exception using errcode = 'SP020', message = 'a delivery set definition is immutable',
            detail = format('version %s', old.delivery_set_version);
    end if;
    if (old.status, new.status) not in (('registered', 'active'), ('active', 'retired'))
       or (old.activated_at is not null and new.activated_at is distinct from old.activated_at) then
        raise exception using errcode = 'SP021',
            message = format('delivery set status %s cannot follow %s', new.status, old.status),
            detail = format('version %s', old.delivery_set_version);
    end if;
    return new;
end $$;

create function seapost.quarantine_once() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if (new.event_id, new.attempt_id, new.quarantined_at, new.destination, new.reason, new.error_ref, new.event_digest)
       is distinct from
       (old.event_id, old.attempt_id, old.quarantined_at, old.destination, old.reason, old.error_ref, old.event_digest)
       or old.acknowledged_at is not null then
        raise exception using errcode = 'SP020', message = 'a quarantine is immutable once acknowledged',
            detail = format('event %s, destination %s', old.event_id, old.destination);
    end if;
    return new;
end $$;

do $$
declare
    v_table text;
begin
    foreach v_table in array array[
        'event', 'delivery', 'delivery_attempt_start', 'delivery_attempt_finish', 'delivery_acknowledgement',
        'publication', 'inbox_receipt', 'delivery_set_event', 'delivery_set_member', 'audit_record',
        'aggregate_revision'
    ] loop
        execute format('create trigger immutable before update or delete on seapost.%I for each row execute function seapost.refuse_change()', v_table);
        execute format('create trigger keep before truncate on seapost.%I for each statement execute function seapost.refuse_change()', v_table);
    end loop;
    foreach v_table in array array[
        'event_0001', 'delivery_0001', 'delivery_attempt_start_0001', 'delivery_attempt_finish_0001',
        'delivery_acknowledgement_0001', 'publication_0001', 'inbox_receipt_0001', 'delivery_quarantine',
        'delivery_set_version'
    ] loop
        execute format('create trigger keep before truncate on seapost.%I for each statement execute function seapost.refuse_change()', v_table);
    end loop;
end $$;

create trigger immutable before delete on seapost.delivery_set_version
    for each row execute function seapost.refuse_change();
create trigger forward before update on seapost.delivery_set_version
    for each row execute function seapost.forward_status();
create trigger immutable before delete on seapost.delivery_quarantine
    for each row execute function seapost.refuse_change();
create trigger once before update on seapost.delivery_quarantine
    for each row execute function seapost.quarantine_once();
