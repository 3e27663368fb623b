-- Purpose: switches the guard level of this database: lean (the functions are the only writers, audit_places proves) or
-- strict (foreign keys, deferred set check, full envelope check). Not for runtime roles: the installer calls it as owner.
-- Locks: ACCESS EXCLUSIVE or SHARE ROW EXCLUSIVE on the fact tables; call it with a lock_timeout.
-- Errors: SP013 unknown level; 23503 when the stored facts break a key, 23505 when two stored events share a revision of
--   an aggregate.
create or replace function seapost.guards_set_v1(p_level text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_level is null or p_level not in ('lean', 'strict') then
        raise exception using errcode = 'SP013', message = 'the guard level must be lean or strict';
    end if;
    if p_level = (select g.level from seapost.guard_level as g) then
        return;
    end if;
    if p_level = 'strict' then
        alter table seapost.event add constraint event_definition
            foreign key (definition_id) references seapost.delivery_set_version;
        alter table seapost.delivery add constraint delivery_event
            foreign key (event_id) references seapost.event deferrable initially deferred,
            add constraint delivery_member foreign key (member_id) references seapost.delivery_set_member;
        alter table seapost.delivery_attempt_start add constraint start_delivery
            foreign key (event_id, destination) references seapost.delivery;
        alter table seapost.delivery_attempt_finish add constraint finish_start
            foreign key (event_id, attempt_id) references seapost.delivery_attempt_start;
        alter table seapost.delivery_acknowledgement add constraint acknowledgement_delivery
            foreign key (event_id, destination) references seapost.delivery;
        alter table seapost.publication add constraint publication_event foreign key (event_id) references seapost.event;
        insert into seapost.aggregate_revision (producer, aggregate_kind, aggregate_id, aggregate_revision, event_id)
        select e.producer, e.aggregate_kind, e.aggregate_id, e.aggregate_revision, e.event_id
        from (select convert_from(f.envelope, 'UTF8')::jsonb ->> 'producer' as producer, f.* from seapost.event as f) as e
        left join seapost.aggregate_revision as r on r.producer = e.producer and r.aggregate_kind = e.aggregate_kind
            and r.aggregate_id = e.aggregate_id and r.aggregate_revision = e.aggregate_revision
        where e.event_id is distinct from r.event_id;
        create trigger strict after insert on seapost.event
            for each row execute function seapost.guard_event_strict();
        create constraint trigger complete after insert on seapost.event deferrable initially deferred
            for each row execute function seapost.guard_delivery_set_complete();
        create constraint trigger complete after insert on seapost.delivery deferrable initially deferred
            for each row execute function seapost.guard_delivery_set_complete();
    else
        drop trigger complete on seapost.delivery;
        drop trigger complete on seapost.event;
        drop trigger strict on seapost.event;
        alter table seapost.publication drop constraint publication_event;
        alter table seapost.delivery_acknowledgement drop constraint acknowledgement_delivery;
        alter table seapost.delivery_attempt_finish drop constraint finish_start;
        alter table seapost.delivery_attempt_start drop constraint start_delivery;
        alter table seapost.delivery drop constraint delivery_member, drop constraint delivery_event;
        alter table seapost.event drop constraint event_definition;
    end if;
    update seapost.guard_level set level = p_level, changed_at = seapost.clock_now();
end $$;
