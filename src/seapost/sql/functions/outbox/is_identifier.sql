-- Purpose: whether a text may be an identifier of somebody's data: 1 to 200 characters of any script in NFC, without
-- outer white space, control characters or format characters (Unicode Cc and Cf). Nothing is repaired. The characters
-- are listed, because what \s matches depends on the locale of the database.
-- Locks: none.
-- Errors: none.
create or replace function seapost.outbox_is_identifier(p_value text)
returns boolean
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
    select length(p_value) between 1 and 200 and p_value is normalized
       and p_value !~ ('^[ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]'
           '|[ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$'
           '|[\u0001-\u001f\u007f-\u009f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u180e'
           '\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd'
           '\U00013430-\U00013438\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]')
$$;
