"""Where a dispatcher listens: at the server itself, whatever way its statements take."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from seapost.cli.databases import direct_dsn_of
from seapost.cli.dispatching import listen_dsn
from seapost.cli.settings import DatabaseSettings
from seapost.model.errors import InvalidSetting

POOLED = "postgresql://app@pooler:6432/shop"
DIRECT = "postgresql://app@database:5432/shop"


@pytest.mark.req("F84")
@pytest.mark.parametrize(
    ("direct", "behind_pooler", "place"),
    [(None, False, POOLED), (None, True, None), (DIRECT, True, DIRECT), (DIRECT, False, DIRECT)],
    ids=["no pooler", "only a pooler", "both", "both, unsaid"],
)
def test_where_a_dispatcher_listens(direct: str | None, behind_pooler: bool, place: str | None) -> None:
    """Nowhere when only a pooler is named; else where `direct_dsn` says, or the one address that there is."""
    database = DatabaseSettings(
        dsn=SecretStr(POOLED),
        direct_dsn=None if direct is None else SecretStr(direct),
        behind_pooler=behind_pooler,
    )

    assert listen_dsn(database, POOLED) == place
    assert direct_dsn_of(database) == (direct or POOLED)


def test_a_malformed_direct_address_is_refused_without_a_quote() -> None:
    """It may hold a password."""
    database = DatabaseSettings(dsn=SecretStr(POOLED), direct_dsn=SecretStr("tr0ub4dor"))
    with pytest.raises(InvalidSetting) as refusal:
        direct_dsn_of(database)
    assert "tr0ub4dor" not in str(refusal.value)
    assert "tr0ub4dor" not in repr(database)
