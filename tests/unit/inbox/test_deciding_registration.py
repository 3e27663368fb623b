"""What a deciding inbox and a projection refuse when they are declared, before any event came."""

from __future__ import annotations

from typing import Literal

import pytest

from seapost.contracts.events import Event
from seapost.contracts.fields import Algorithm, Digest, Identifier, Timestamp
from seapost.contracts.receipt_registry import kernel_receipts
from seapost.contracts.receipts import ConsumerReceipt, Receipt
from seapost.inbox.deciding import DecidingInbox
from seapost.model.delivery_set import ProjectionTarget
from seapost.model.errors import ContractError, InvalidSetting, UnknownContract
from seapost.projections.projection import Projection
from tests.kit.deciding import RECEIPTS, JudgedReceipt, ViewReceipt, Weighed


def judge() -> DecidingInbox:
    """An inbox without handlers."""
    return DecidingInbox("judge", receipt=JudgedReceipt, receipts=RECEIPTS)


def view(name: str = "parcels", version: str = "1", consumer: str | None = None) -> Projection:
    """A projection without mutations."""
    return Projection(name, version, consumer=consumer, receipt=ViewReceipt, receipts=RECEIPTS)


class NotedReceipt(Receipt, prefix="notedReceipt", outside=("committedAt", "note")):
    """A receipt whose digest leaves out what nobody stores."""

    noted_receipt_ref: Identifier
    noted_receipt_schema_version: Literal["1"]
    noted_receipt_digest_algorithm_version: Algorithm
    noted_receipt_digest: Digest
    note: str
    committed_at: Timestamp


async def awaited(transaction: object, event: object, context: object) -> None:
    """An asynchronous handler."""


def two(transaction: object, event: object) -> None:
    """A handler that could not know what to put into its receipt."""


def three(transaction: object, event: object, context: object) -> None:
    """A handler."""


@pytest.mark.parametrize("function", [awaited, two])
def test_a_handler_is_a_plain_function_of_three(function: object) -> None:
    """Another colour or fewer arguments are refused when the handler is registered, and nothing is kept of it."""
    inbox = judge()
    with pytest.raises(InvalidSetting, match="plain function"):
        inbox.consumer(Weighed)(function)  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert not inbox.handlers


@pytest.mark.req("SET-39")
def test_an_event_has_one_handler_until_the_inbox_starts() -> None:
    """A second handler of the pair, and any after the start, is refused."""

    class Lost(Event, type="parcel.lost@1"):
        parcel: str

    inbox = judge()
    assert inbox.consumer(Weighed, prepare=lambda items: items)(three) is three
    assert set(inbox.prepares) == {Weighed}
    with pytest.raises(InvalidSetting, match="already has a handler"):
        inbox.consumer(Weighed)(three)
    inbox.close()
    with pytest.raises(InvalidSetting, match="before the inbox starts"):
        inbox.consumer(Lost)(three)


@pytest.mark.req("AMB-38")
def test_the_receipt_type_must_be_registered() -> None:
    """A type that the dispatcher could not verify is refused."""
    with pytest.raises(UnknownContract):
        DecidingInbox("judge", receipt=JudgedReceipt, receipts=kernel_receipts())


@pytest.mark.req("SET-11", "SET-32")
def test_receipt_type_and_projection_belong_together() -> None:
    """A projection receipt needs a target, and no other receipt has one."""
    with pytest.raises(InvalidSetting, match="do not belong together"):
        DecidingInbox("viewer", receipt=ViewReceipt, moment="applied_at", receipts=RECEIPTS)
    with pytest.raises(InvalidSetting, match="do not belong together"):
        DecidingInbox("judge", receipt=JudgedReceipt, receipts=RECEIPTS, projection=ProjectionTarget("parcels", "1"))
    with pytest.raises(InvalidSetting, match="do not belong together"):
        Projection("parcels", "1", receipt=JudgedReceipt, moment="committed_at", receipts=RECEIPTS)


@pytest.mark.req("DLV-20")
def test_what_the_digest_leaves_out_must_be_stored() -> None:
    """Else a redelivery could not be answered with the same bytes; the moment must be a field."""
    registry = kernel_receipts()
    registry.register(NotedReceipt, ack_kind="noted_receipt")
    with pytest.raises(InvalidSetting, match="leaves out more"):
        DecidingInbox("noter", receipt=NotedReceipt, receipts=registry)
    with pytest.raises(InvalidSetting, match="no field applied_at"):
        DecidingInbox("judge", receipt=JudgedReceipt, moment="applied_at", receipts=RECEIPTS)
    assert DecidingInbox("plain", receipt=ConsumerReceipt, receipts=RECEIPTS).key == "plain"


@pytest.mark.req("OPS-01", "RCP-03")
def test_versions_of_a_projection_keep_their_receipts_apart() -> None:
    """The key names consumer, projection and version, and is no consumer's name; one that is too long is refused."""
    keys = {view(version=version).inbox.key for version in ("1", "2")}
    assert keys == {"parcels@parcels@1", "parcels@parcels@2"}
    assert {view(consumer="viewer").inbox.name, view(consumer="viewer").inbox.destination} == {"viewer"}
    with pytest.raises(InvalidSetting, match="100 characters"):
        view(consumer="v" * 60, name="p" * 60)


@pytest.mark.parametrize(("name", "version"), [("Parcels", "1"), ("parcels", "one"), ("", "1"), ("parcels", "")])
def test_a_projection_has_a_legal_name_and_version(name: str, version: str) -> None:
    """As its target in a delivery set."""
    with pytest.raises(ContractError):
        view(name, version)
