-- Purpose: the digest of a set from its count and two sums over its members' hashes, modulo 2^64 each: the same for every order,
-- and different for any member that is missing, doubled or altered. It detects faults; it is no defence against somebody who
-- computes collisions.
-- Locks: none.
-- Errors: none.
create or replace function seapost.completeness_set_digest(p_count numeric, p_sum_a numeric, p_sum_b numeric)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
    select encode(sha256(convert_to(format('["seapost-set-1",%s,%s,%s]', coalesce(p_count, 0),
        mod(mod(coalesce(p_sum_a, 0), 18446744073709551616) + 18446744073709551616, 18446744073709551616),
        mod(mod(coalesce(p_sum_b, 0), 18446744073709551616) + 18446744073709551616, 18446744073709551616)), 'UTF8')), 'hex')
$$;
