-- Purpose: the installer's own tables, made before the first migration can be recorded. Idempotent. The schema name is
-- replaced when another application is installed. A finished migration is a fact.
-- Locks: none on existing objects.
-- Errors: SP020 on an attempt to rewrite history.

create table if not exists seapost.schema_migration (
    number int not null check (number >= 0),
    phase text collate "C" not null check (phase in ('pre', 'post')),
    name text collate "C" not null,
    checksum text collate "C" not null check (checksum ~ '^[0-9a-f]{64}$'),
    release text collate "C" not null,
    applied_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz,  -- null is the dirty marker: it began outside a transaction and did not end
    primary key (number, phase)
);

create table if not exists seapost.schema_object (
    kind text collate "C" not null check (kind in ('bootstrap', 'roles', 'function', 'view', 'privilege')),
    name text collate "C" not null,
    checksum text collate "C" not null check (checksum ~ '^[0-9a-f]{64}$'),
    release text collate "C" not null,
    applied_at timestamptz not null default clock_timestamp(),
    primary key (kind, name)
);

create or replace function seapost.schema_migration_keep() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'UPDATE' then
        if old.finished_at is null and (new.number, new.phase) = (old.number, old.phase) then
            return new;
        end if;
    end if;
    raise exception using errcode = 'SP020', message = 'an applied migration is never changed or deleted';
end $$;

create or replace trigger keep before update or delete on seapost.schema_migration
    for each row execute function seapost.schema_migration_keep();

-- What this owner creates from now on is executable by nobody but whom the privilege files name.
alter default privileges revoke execute on functions from public;
revoke all on function seapost.schema_migration_keep() from public;
