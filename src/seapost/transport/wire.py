"""The wire format `seapost.delivery.v1`: a batch of deliveries out, one result for each of them back.

Envelopes, receipts and acknowledgements travel as strings that hold their exact canonical text, so that no
JSON library on the way can spell them differently; their digests cover those bytes (F36).

Reading is strict on both ends: I-JSON without duplicate names, no unknown field, every size limited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import Field, ValidationError

from seapost.contracts.canonical import Limits, parse
from seapost.contracts.contract import Contract, refusal
from seapost.contracts.fields import Digest, EventId, EventType, Label, Name, Version
from seapost.model.delivery_set import DefinitionQuad
from seapost.model.errors import ContractError
from seapost.model.outcome import (
    NON_RETRYABLE_CODES,
    RETRYABLE_CODES,
    Acknowledged,
    ErrorCode,
    NonRetryable,
    Outcome,
    Retryable,
)
from seapost.transport.protocol import DeliveryRequest, IncomingDelivery

PROTOCOL: Final = "seapost.delivery.v1"
MEDIA_TYPE: Final = "application/json"
PATH: Final = "/seapost/v1/deliveries"
RECEIPT_PATH: Final = "/seapost/v1/receipts/read"

DELIVERIES_MAX: Final = 10_000
ENVELOPE_CHARACTERS_MAX: Final = 1_048_576
RECEIPT_CHARACTERS_MAX: Final = 65_536
RETRY_AFTER_SECONDS_MAX: Final = 10**9

_REFERENCE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)

Counter = Annotated[int, Field(ge=1, le=2**53 - 1)]
AttemptId = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,18}$")]
"""A 64-bit number as a decimal string: as a JSON number, other languages would round it."""


class WireMember(Contract):
    """The coordinates of a frozen member: the definition's quad and the pair of type and version."""

    delivery_set_version: Label
    delivery_set_definition_schema_version: Version
    delivery_set_definition_digest_algorithm_version: Label
    delivery_set_definition_digest: Digest
    event_type: EventType
    event_schema_version: Version


class WireDelivery(Contract):
    """One delivery; `member` is its position in `members`, counted from 0."""

    event_id: EventId
    attempt_id: AttemptId
    attempt_number: Counter
    member: Annotated[int, Field(ge=0, le=DELIVERIES_MAX)]
    event_envelope_digest_algorithm_version: Label
    event_envelope_sha256: Digest
    envelope: Annotated[str, Field(max_length=ENVELOPE_CHARACTERS_MAX)]


class WireRequest(Contract):
    """The body of a delivery request."""

    protocol: Literal["seapost.delivery.v1"]
    destination: Name
    consumer_name: Name
    members: Annotated[list[WireMember], Field(min_length=1, max_length=DELIVERIES_MAX)]
    deliveries: Annotated[list[WireDelivery], Field(min_length=1, max_length=DELIVERIES_MAX)]


class WireAcknowledged(Contract):
    """The consumer has the event; receipt and acknowledgement are canonical JSON texts."""

    event_id: EventId
    outcome: Literal["acknowledged"]
    receipt: Annotated[str, Field(max_length=RECEIPT_CHARACTERS_MAX)]
    ack: Annotated[str, Field(max_length=RECEIPT_CHARACTERS_MAX)]


class WireRetryable(Contract):
    """Try again later."""

    event_id: EventId
    outcome: Literal["retryable"]
    code: Annotated[str, Field(max_length=64)]
    reference: Annotated[str, Field(max_length=200)] | None = None
    retry_after_seconds: float | None = None


class WireNonRetryable(Contract):
    """The event can never be processed as it is."""

    event_id: EventId
    outcome: Literal["non_retryable"]
    code: Annotated[str, Field(max_length=64)]
    reference: Annotated[str, Field(max_length=200)] | None = None


WireResult = Annotated[WireAcknowledged | WireRetryable | WireNonRetryable, Field(discriminator="outcome")]


class WireResponse(Contract):
    """The body of a 200 response: one result for each delivery, in the order of the request."""

    protocol: Literal["seapost.delivery.v1"]
    results: Annotated[list[WireResult], Field(max_length=DELIVERIES_MAX)]


def encode_request(request: DeliveryRequest) -> bytes:
    """Write the body for a batch; equal members are named once."""
    members: dict[tuple[object, ...], int] = {}
    deliveries: list[dict[str, object]] = []
    for item in request.deliveries:
        coordinates = (item.definition, item.event_type, item.schema_version)
        deliveries.append(
            {
                "eventId": str(item.event_id),
                "attemptId": str(item.attempt_id),
                "attemptNumber": item.attempt_number,
                "member": members.setdefault(coordinates, len(members)),
                "eventEnvelopeDigestAlgorithmVersion": item.digest_algorithm,
                "eventEnvelopeSha256": item.digest.hex(),
                "envelope": item.envelope.decode(),
            }
        )
    return _dump(
        {
            "protocol": PROTOCOL,
            "destination": request.destination,
            "consumerName": request.consumer_name,
            "members": [_member_document(*coordinates) for coordinates in members],  # pyright: ignore[reportArgumentType]
            "deliveries": deliveries,
        }
    )


def _member_document(definition: DefinitionQuad, event_type: str, schema_version: str) -> dict[str, object]:
    return {
        "deliverySetVersion": definition.version,
        "deliverySetDefinitionSchemaVersion": definition.schema_version,
        "deliverySetDefinitionDigestAlgorithmVersion": definition.digest_algorithm_version,
        "deliverySetDefinitionDigest": definition.digest,
        "eventType": event_type,
        "eventSchemaVersion": schema_version,
    }


def decode_request(body: bytes, *, body_bytes_max: int, deliveries_max: int = DELIVERIES_MAX) -> DeliveryRequest:
    """Read a delivery request.

    Raises:
        ContractError: the body is no request of this protocol, with the pointer of the first problem.
        LimitExceeded: it is too large, or has more than `deliveries_max` deliveries.
    """
    value = parse(body, limits=_limits(body_bytes_max))
    try:
        request = WireRequest.model_validate_json(body, by_alias=True, by_name=False)
    except ValidationError as error:
        raise refusal(error, value) from None
    if len(request.deliveries) > deliveries_max:
        message = f"A request carries at most {deliveries_max} deliveries"
        raise ContractError(message, pointer="/deliveries", rule="deliveries_max")
    members = [
        DefinitionQuad(
            member.delivery_set_version,
            member.delivery_set_definition_schema_version,
            member.delivery_set_definition_digest_algorithm_version,
            member.delivery_set_definition_digest,
        )
        for member in request.members
    ]
    deliveries: list[IncomingDelivery] = []
    for position, item in enumerate(request.deliveries):
        if item.member >= len(members):
            message = "The delivery names a member that the request does not list"
            raise ContractError(message, pointer=f"/deliveries/{position}/member", rule="member")
        member = request.members[item.member]
        deliveries.append(
            IncomingDelivery(
                event_id=UUID(item.event_id),
                attempt_id=int(item.attempt_id),
                attempt_number=item.attempt_number,
                definition=members[item.member],
                event_type=member.event_type,
                schema_version=member.event_schema_version,
                digest_algorithm=item.event_envelope_digest_algorithm_version,
                digest=bytes.fromhex(item.event_envelope_sha256),
                envelope=item.envelope.encode(),
            )
        )
    return DeliveryRequest(request.destination, request.consumer_name, tuple(deliveries))


def encode_response(request: DeliveryRequest, outcomes: Sequence[Outcome]) -> bytes:
    """Write the body of the answer to `request`."""
    return _dump(
        {
            "protocol": PROTOCOL,
            "results": [
                _result_document(delivery.event_id, outcome)
                for delivery, outcome in zip(request.deliveries, outcomes, strict=True)
            ],
        }
    )


def _result_document(event_id: UUID, outcome: Outcome) -> dict[str, object]:
    match outcome:
        case Acknowledged(receipt, ack):
            return {
                "eventId": str(event_id),
                "outcome": "acknowledged",
                "receipt": receipt.decode(),
                "ack": ack.decode(),
            }
        case Retryable(code, reference, retry_after_seconds):
            document: dict[str, object] = {"eventId": str(event_id), "outcome": "retryable", "code": code.value}
            if retry_after_seconds is not None:
                document["retryAfterSeconds"] = min(retry_after_seconds, RETRY_AFTER_SECONDS_MAX)
        case NonRetryable(code, reference):
            document = {"eventId": str(event_id), "outcome": "non_retryable", "code": code.value}
    if reference is not None:
        document["reference"] = reference
    return document


def decode_response(body: bytes, request: DeliveryRequest, *, body_bytes_max: int) -> list[Outcome]:
    """Read the answer to `request`: one outcome for each delivery, in order.

    A result whose code belongs to the other kind of outcome is no answer about that delivery alone; its
    neighbours stand.

    Raises:
        ContractError: the body is no answer to this request.
    """
    value = parse(body, limits=_limits(body_bytes_max))
    try:
        response = WireResponse.model_validate_json(body, by_alias=True, by_name=False)
    except ValidationError as error:
        raise refusal(error, value) from None
    if len(response.results) != len(request.deliveries):
        message = f"The response has {len(response.results)} results for {len(request.deliveries)} deliveries"
        raise ContractError(message, pointer="/results", rule="count")
    outcomes: list[Outcome] = []
    for position, (result, delivery) in enumerate(zip(response.results, request.deliveries, strict=True)):
        if result.event_id != str(delivery.event_id):
            message = "The result belongs to another event than the delivery at its place"
            raise ContractError(message, pointer=f"/results/{position}/eventId", rule="event_id")
        outcomes.append(_outcome(result))
    return outcomes


def _outcome(result: WireAcknowledged | WireRetryable | WireNonRetryable) -> Outcome:
    match result:
        case WireAcknowledged():
            return Acknowledged(result.receipt.encode(), result.ack.encode())
        case WireRetryable() if result.code in RETRYABLE_CODES:
            return Retryable(ErrorCode(result.code), _reference(result.reference), _wait(result.retry_after_seconds))
        case WireNonRetryable() if result.code in NON_RETRYABLE_CODES:
            return NonRetryable(ErrorCode(result.code), _reference(result.reference))
        case _:
            return Retryable(ErrorCode.ACK_INVALID, _reference(result.reference))


def _reference(text: str | None) -> str | None:
    """A peer's reference when it has the form of one; it goes into the database and into logs."""
    return text if text is not None and _REFERENCE.fullmatch(text) else None


def _wait(seconds: float | None) -> float | None:
    """A peer's wish when it is one; the retry policy clamps it (F26)."""
    return seconds if seconds is not None and 0 <= seconds <= RETRY_AFTER_SECONDS_MAX else None


def _limits(body_bytes_max: int) -> Limits:
    return Limits(
        bytes_max=body_bytes_max, depth_max=6, items_max=20 * DELIVERIES_MAX, string_max=ENVELOPE_CHARACTERS_MAX
    )


def _dump(document: dict[str, object]) -> bytes:
    return json.dumps(document, ensure_ascii=False, check_circular=False, separators=(",", ":")).encode()
