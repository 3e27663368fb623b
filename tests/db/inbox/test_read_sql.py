"""`inbox_read_v1`: one receipt by its complete identity, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import pytest

from tests.kit import builders
from tests.kit.kernel import Kernel, Row

RECEIPT = b'{"outcome":"applied"}'
DIGEST = builders.digest(b"event")


@pytest.fixture
def event_id(kernel: Kernel) -> UUID:
    """Give an event that `billing_consumer` has received."""
    identity = builders.new_event_id()
    kernel.rows(
        "select * from seapost.inbox_receive_v1('billing_consumer', %s, %s, %s, %s)",
        [identity],
        [DIGEST],
        ["ref-1"],
        [RECEIPT],
    )
    return identity


def _read(kernel: Kernel, event_id: UUID, **changes: object) -> Row:
    asked: Mapping[str, object] = {
        "consumer": "billing_consumer",
        "event_id": event_id,
        "event_digest": DIGEST,
        "receipt_ref": "ref-1",
        "receipt_digest": builders.digest(RECEIPT),
        **changes,
    }
    return kernel.row("select * from seapost.inbox_read_v1(%s, %s, %s, %s, %s)", *asked.values())


@pytest.mark.req("AMB-44", "RCP-40")
def test_the_complete_identity_finds_the_receipt(kernel: Kernel, event_id: UUID) -> None:
    """All five coordinates agree: the exact bytes come back."""
    result, ref, candidate, committed_at = _read(kernel, event_id)
    assert (result, ref, bytes(candidate)) == ("found", "ref-1", RECEIPT)
    assert committed_at == kernel.value("select committed_at from seapost.inbox_receipts")


@pytest.mark.req("AMB-44", "RCP-41")
@pytest.mark.parametrize(
    "changes",
    [
        {"event_digest": builders.digest(b"other")},
        {"receipt_ref": "ref-2"},
        {"receipt_digest": builders.digest(b"other")},
        {"event_digest": None},
        {"receipt_ref": None},
        {"receipt_digest": None},
    ],
    ids=str,
)
def test_any_difference_is_conflicting_and_shows_nothing(
    kernel: Kernel, event_id: UUID, changes: dict[str, object]
) -> None:
    """Who asks with one wrong or missing coordinate learns that it is wrong, and gets no receipt."""
    assert _read(kernel, event_id, **changes) == ("conflicting", None, None, None)


@pytest.mark.req("AMB-44", "RCP-41")
def test_an_unknown_event_or_another_consumer_is_not_found(kernel: Kernel, event_id: UUID) -> None:
    """There is no receipt of an event never received, nor of another consumer."""
    empty = ("not_found", None, None, None)
    assert _read(kernel, builders.new_event_id()) == empty
    assert _read(kernel, event_id, consumer="search_consumer") == empty
    assert _read(kernel, event_id, consumer=None) == empty
