-- Purpose: fair lanes inside a destination (F23), and the question whether a suspect of a destination is out. A row keeps
-- its lane from append to its end; which lanes appends use is an operational setting and no part of a delivery set.

create table seapost.destination_setting (
    destination text collate "C" primary key,
    fair_lanes smallint not null check (fair_lanes between 1 and 256),  -- what appends spread tenants over; 1 = off
    lanes_claimed smallint not null check (lanes_claimed >= fair_lanes),  -- most it ever was: what claims look at
    changed_at timestamptz not null
);

alter table seapost.delivery_ready add column lane smallint not null default 0;
alter table seapost.delivery_lease add column lane smallint not null default 0;

drop index seapost.delivery_ready_claim;
create index delivery_ready_claim on seapost.delivery_ready (destination, suspect, lane, available_at, created_at, event_id);
create index delivery_lease_suspects on seapost.delivery_lease (destination, expires_at) where lost_count > 0;
