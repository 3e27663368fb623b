"""`seapost receipt`: is this document a receipt, is its digest its own, and does a database agree?"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final
from uuid import UUID

import typer

from seapost.cli.databases import Session, looking
from seapost.cli.exit_codes import ExitCode
from seapost.cli.loading import load_application
from seapost.cli.options import ConfigOption, ConsumerOption, DsnOption, JsonOption
from seapost.cli.output import Fields, Output
from seapost.cli.settings import load_settings
from seapost.contracts.canonical import parse
from seapost.contracts.content_addressed import Quad
from seapost.contracts.receipt_registry import DEFAULT_RECEIPTS, ReceiptRegistry, ReceiptType
from seapost.contracts.receipts import Receipt
from seapost.model.errors import ContractError, UnknownContract
from seapost.store import status

FILE_BYTES_MAX: Final = 1_048_576

app = typer.Typer(help="Check a consumer's receipt.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON file with one receipt; - reads standard input.")],
    application: Annotated[
        str | None,
        typer.Option(
            "--app", metavar="APP", help="module:attribute of the Application that registers the receipt type."
        ),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also compare with what the database holds for this event.")
    ] = False,
    consumer: ConsumerOption = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Decode a receipt strictly, compute its digest again and, with --compare, look for it in a database.

    With --compare the outbox's database must hold the acknowledgement that names this receipt, the consumer's
    database (--consumer) the receipt itself.
    """
    output = Output(as_json=as_json)
    registry = DEFAULT_RECEIPTS if application is None else load_application(application).receipts
    section = "consumer" if consumer else "database"
    settings = load_settings(file=config, flags={(section, "dsn"): dsn})
    text = _read(file)
    try:
        kind, receipt = decode_receipt(registry, text)
    except ContractError as error:
        output.emit(
            {"valid": False, "problem": error.message, "rule": error.rule, "pointer": error.pointer},
            Fields({"valid": False, "problem": error.message, "rule": error.rule, "at": error.pointer or None}),
        )
        return ExitCode.CHECK_FAILED
    document: dict[str, object] = {"valid": True, **_document(kind, receipt)}
    if compare:

        async def look() -> str:
            async with looking(settings.consumer if consumer else settings.database, section) as connection:
                return await (_in_inbox if consumer else _in_outbox)(connection, receipt)

        document["comparison"] = asyncio.run(look())
    output.emit(document, Fields(_spoken(document)))
    match document.get("comparison"):
        case "different":
            return ExitCode.CHECK_FAILED
        case "not_found":
            return ExitCode.NOT_FOUND
        case _:
            return ExitCode.DONE


def decode_receipt(registry: ReceiptRegistry, text: bytes) -> tuple[ReceiptType, Receipt]:
    """The receipt in a document and its type, found by its own digest field; its digest is computed again.

    Raises:
        UnknownContract: the document is no receipt of a registered type.
        ContractError: it breaks its contract, or its digest belongs to other content.
    """
    value = parse(text)
    if isinstance(value, dict):
        for kind in registry:
            if f"{kind.prefix}Digest" in value and value.get(f"{kind.prefix}SchemaVersion") == kind.schema_version:
                return kind, kind.model.decode(value)
    known = ", ".join(f"{kind.name}@{kind.schema_version}" for kind in registry)
    raise UnknownContract(f"The document is no receipt of a known type ({known})", rule="unknown_receipt_type")


def _read(file: Path) -> bytes:
    if str(file) == "-":
        return typer.get_binary_stream("stdin").read(FILE_BYTES_MAX + 1)
    with file.open("rb") as stream:
        return stream.read(FILE_BYTES_MAX + 1)


async def _in_outbox(connection: Session, receipt: Receipt) -> str:
    """Compare with the acknowledgement of the delivery that the receipt is for."""
    delivery = await status.delivery(connection, event_id=UUID(receipt.event_id), destination=receipt.destination)
    if delivery is None or delivery.ack_receipt_digest is None:
        return "not_found"
    quad = receipt.quad()
    stored = (
        delivery.consumer_name,
        delivery.ack_receipt_key,
        delivery.ack_receipt_schema_version,
        delivery.ack_receipt_digest,
        delivery.ack_event_envelope_sha256,
    )
    stated = (receipt.consumer_name, quad.ref, quad.schema_version, quad.digest, receipt.event_envelope_sha256)
    return "same" if _equal(stored, stated) else "different"


async def _in_inbox(connection: Session, receipt: Receipt) -> str:
    """Compare with the receipt that the consumer's database keeps for the event."""
    kept = await status.receipt(connection, consumer=receipt.consumer_name, event_id=UUID(receipt.event_id))
    if kept is None:
        return "not_found"
    quad = receipt.quad()
    stored = (kept.receipt_ref, kept.receipt_digest, kept.event_envelope_sha256, kept.receipt_candidate.hex())
    stated = (quad.ref, quad.digest, receipt.event_envelope_sha256, receipt.candidate_bytes().hex())
    return "same" if _equal(stored, stated) else "different"


def _equal(stored: tuple[str | None, ...], stated: tuple[str, ...]) -> bool:
    return all(hmac.compare_digest(mine or "", theirs) for mine, theirs in zip(stored, stated, strict=True))


def _document(kind: ReceiptType, receipt: Receipt) -> dict[str, object]:
    quad: Quad = receipt.quad()
    return {
        "receiptType": kind.name,
        "receiptSchemaVersion": kind.schema_version,
        "receiptRef": quad.ref,
        "receiptDigestAlgorithmVersion": quad.digest_algorithm_version,
        "receiptDigest": quad.digest,
        "destination": receipt.destination,
        "consumerName": receipt.consumer_name,
        "eventId": receipt.event_id,
        "eventType": receipt.event_type,
        "eventSchemaVersion": receipt.event_schema_version,
        "eventEnvelopeSha256": receipt.event_envelope_sha256,
    }


def _spoken(document: Mapping[str, object]) -> dict[str, object]:
    names = {
        "valid": "valid",
        "receiptType": "receipt type",
        "receiptSchemaVersion": "schema version",
        "receiptRef": "reference",
        "receiptDigest": "digest",
        "destination": "destination",
        "consumerName": "consumer",
        "eventId": "event",
        "eventType": "event type",
        "eventEnvelopeSha256": "envelope sha256",
        "comparison": "database",
    }
    return {spoken: document[name] for name, spoken in names.items() if name in document}
