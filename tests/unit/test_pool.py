"""Connection strings: named, limited, and never shown with a secret."""

from __future__ import annotations

import pytest
from psycopg import conninfo

from seapost.database.pool import (
    RoleTimeouts,
    check_dsn,
    open_pool,
    open_sync_pool,
    part_dsn,
    redact_dsn,
    refuse_pooler,
)
from seapost.model.errors import InvalidSetting, UnsupportedDatabase

SECRET = "tr0ub4dor&3"
DSN = "postgresql://app:tr0ub4dor%263@db.example:5433/orders?sslmode=require"


def test_a_redacted_string_has_everything_but_the_secret() -> None:
    """User, host, port and database stay readable; the password is gone in every notation."""
    shown = redact_dsn(DSN)
    assert SECRET not in shown
    assert "tr0ub" not in shown
    assert conninfo.conninfo_to_dict(shown)["host"] == "db.example"
    assert "tr0ub" not in redact_dsn(f"host=db password='{SECRET}' sslpassword=tr0ub")


def test_an_unreadable_string_is_never_quoted() -> None:
    """A connection string that libpq cannot read appears in no message, for it may hold a password."""
    broken = f"postgresql://app:{SECRET}@[::1/orders"
    assert SECRET not in redact_dsn(broken)
    with pytest.raises(InvalidSetting) as caught:
        check_dsn(broken)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_pools_show_no_secret() -> None:
    """The representation of a pool names the part and nothing of the connection string."""
    assert "tr0ub" not in repr(open_pool(DSN, part="dispatcher"))
    assert "seapost-inbox" in repr(open_sync_pool(DSN, part="inbox"))


def test_a_part_is_named_and_notices_a_dead_peer() -> None:
    """Each connection carries its part's name and keepalives; limits of the user's own string win."""
    parameters = conninfo.conninfo_to_dict(part_dsn(f"{DSN}&connect_timeout=3", "dispatcher"))
    assert parameters["application_name"] == "seapost-dispatcher"
    assert parameters["keepalives"] in {1, "1"}
    assert parameters["connect_timeout"] in {3, "3"}


@pytest.mark.parametrize("part", ["", "x" * 41, "a\nb"])
def test_a_part_needs_a_short_printable_name(part: str) -> None:
    """An empty, overlong or unprintable name is refused."""
    with pytest.raises(InvalidSetting):
        part_dsn(DSN, part)


@pytest.mark.parametrize(("size_min", "size_max"), [(-1, 4), (5, 4), (0, 0)])
def test_pool_sizes_are_checked(size_min: int, size_max: int) -> None:
    """A pool whose sizes make no sense is refused before it exists."""
    with pytest.raises(InvalidSetting):
        open_sync_pool(DSN, part="inbox", size_min=size_min, size_max=size_max)


def test_timeouts_are_checked() -> None:
    """A negative time limit is refused."""
    with pytest.raises(InvalidSetting):
        RoleTimeouts(statement_seconds=-1)


@pytest.mark.req("F84")
def test_a_pooler_is_recognised() -> None:
    """A pooler answers connects with a process id of its own making, which the server's differs from."""
    refuse_pooler(17, 17)
    with pytest.raises(UnsupportedDatabase, match="direct connection"):
        refuse_pooler(17, 4711)


@pytest.mark.req("F84")
def test_a_role_is_refused_behind_a_pooler() -> None:
    """It would hold for one transaction and then be somebody else's; the message says what to do instead."""
    with pytest.raises(InvalidSetting, match="seapost_consumer cannot be taken on behind a connection pooler"):
        open_pool("host=localhost", part="inbox", role="seapost_consumer", behind_pooler=True)
