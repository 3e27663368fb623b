-- Purpose: deliveries to a version of a projection that are neither acknowledged nor in quarantine (ORD-05 a).
-- Locks: none.
-- Errors: none.
create or replace function seapost.completeness_unfinished(p_name text, p_version text)
returns bigint
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select (select count(*) from seapost.delivery_ready as d join seapost.delivery_set_member as m on m.member_id = d.member_id
            where m.projection_name = p_name and m.projection_version = p_version)
         + (select count(*) from seapost.delivery_lease as l join seapost.delivery_set_member as m on m.member_id = l.member_id
            where m.projection_name = p_name and m.projection_version = p_version)
$$;
