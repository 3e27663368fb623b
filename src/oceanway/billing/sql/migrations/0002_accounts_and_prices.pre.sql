-- Purpose: who pays, and what a unit costs.

create table billing.account (
    billing_account_id text collate "C" primary key,
    currency text collate "C" not null check (currency ~ '^[A-Z]{3}$'),
    deposited numeric not null default 0 check (deposited >= 0),
    available numeric not null default 0,  -- below zero only by an overshoot at finalization
    opened_at timestamptz not null default clock_timestamp()
);

create table billing.deposit (
    deposit_ref text collate "C" primary key,
    billing_account_id text collate "C" not null references billing.account (billing_account_id),
    amount numeric not null check (amount > 0 and scale(amount) <= 9),
    booked_at timestamptz not null default clock_timestamp()
);
create index deposit_account_idx on billing.deposit (billing_account_id);

create table billing.price (  -- a version of a price book never changes
    price_book_ref text collate "C" not null,
    price_book_version text collate "C" not null,
    quantity_unit text collate "C" not null,
    currency text collate "C" not null check (currency ~ '^[A-Z]{3}$'),
    unit_price numeric not null check (unit_price >= 0 and scale(unit_price) <= 9),
    primary key (price_book_ref, price_book_version, quantity_unit, currency)
);

create trigger deposit_immutable before update or delete on billing.deposit
    for each row execute function billing.guard_reject_change();
create trigger price_immutable before update or delete on billing.price
    for each row execute function billing.guard_reject_change();
