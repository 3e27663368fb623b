-- Purpose: how many deliveries may wait for a destination before append refuses more (docs/decisions/0014). No row is
-- written by an append: the gate is a sequence, which no transaction takes back and no reader waits for.

create table seapost.backpressure_limit (
    destination text collate "C" primary key,
    watermark int not null check (watermark between 1 and 1000000),
    action text collate "C" not null check (action in ('refuse', 'slow', 'off')),
    wait_seconds int not null check (wait_seconds between 0 and 60),  -- what "slow" waits at most; 0 unless slow
    gate regclass not null,  -- a sequence: credit left, or what a closed gate says; see backpressure_probe
    changed_at timestamptz not null,
    check ((action = 'slow') = (wait_seconds > 0))
);
