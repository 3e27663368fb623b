-- Purpose: what a stepwise tree keeps beside the tables of bootstrap.sql: what an operator decided about a migration that
-- stopped half-way, and why. Idempotent. Such a row is a fact; with `reverted`, the dirty marker that it names may go.
-- Locks: none on existing objects.
-- Errors: SP020 on an attempt to rewrite history.

create table if not exists seapost.schema_resolution (
    number int not null,
    phase text collate "C" not null check (phase in ('pre', 'post')),
    started_at timestamptz not null,  -- schema_migration.applied_at of the run that stopped
    state text collate "C" not null check (state in ('applied', 'reverted')),
    reason text not null check (length(reason) between 1 and 1000),
    actor text collate "C" not null default session_user,
    resolved_at timestamptz not null default clock_timestamp(),
    primary key (number, phase, started_at)
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
    elsif old.finished_at is null and exists (
            select from seapost.schema_resolution as r
            where (r.number, r.phase, r.started_at, r.state) = (old.number, old.phase, old.applied_at, 'reverted')) then
        return old;
    end if;
    raise exception using errcode = 'SP020', message = 'an applied migration is never changed or deleted';
end $$;

create or replace function seapost.schema_resolution_keep() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using errcode = 'SP020', message = 'a decision about a migration is never changed or deleted';
end $$;

create or replace trigger keep before update or delete on seapost.schema_resolution
    for each row execute function seapost.schema_resolution_keep();

revoke all on function seapost.schema_migration_keep(), seapost.schema_resolution_keep() from public;
