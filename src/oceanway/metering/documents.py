"""Documents by their wire names: what metering writes is built once, sealed with its digest, checked by its contract.

A document that goes from one table into another is never turned into objects in between; the contract still refuses
whatever would break it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from oceanway.contracts.identity import ALGORITHM, Quad
from seapost.contracts.canonical import encode
from seapost.contracts.contract import refusal
from seapost.contracts.digest import sha256_hex

if TYPE_CHECKING:
    from seapost.contracts.content_addressed import ContentAddressed

Document = dict[str, Any]

QUAD: tuple[str, ...] = ("Ref", "SchemaVersion", "DigestAlgorithmVersion", "Digest")
QUINT: tuple[str, ...] = (*QUAD, "StateVersion")
TENANT: tuple[str, ...] = ("tenantKind", "tenantId", "workspaceId", "projectId")
RUN: tuple[str, ...] = (*TENANT, "billingAccountId", "billingReservationId", "runId")
PLACE: tuple[str, ...] = ("runId", "runStepId", "executionAttemptId")
ATTEMPT: tuple[str, ...] = (*RUN, "runStepId", "executionAttemptId")


@dataclass(frozen=True, slots=True)
class Sealed:
    """A content-addressed document with its digest.

    Attributes:
        document: by wire names.
        data: its canonical bytes.
    """

    document: Document
    data: bytes
    quad: Quad


def seal(kind: type[ContentAddressed], fields: Mapping[str, Any]) -> Sealed:
    """Complete a document of this kind with schema version, algorithm and digest.

    Raises:
        ContractError: it breaks the contract of its kind.
    """
    addressing = kind.addressing
    document: Document = {
        **fields,
        addressing.schema_version: kind.schema_version,
        addressing.algorithm: ALGORITHM,
    }
    covered = {name: value for name, value in document.items() if name not in addressing.outside}
    digest = sha256_hex(encode(covered))
    document[addressing.digest] = digest
    data = encode(document)
    try:
        _ = kind.model_validate_json(data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise refusal(error, document) from None
    return Sealed(document, data, Quad(str(document[addressing.ref]), kind.schema_version, ALGORITHM, digest))


def read(data: bytes) -> Document:
    """A document that this owner wrote or accepted before, without judging it again."""
    document: Document = json.loads(data)
    return document


def part(document: Mapping[str, Any], names: Iterable[str]) -> Document:
    """Some fields of a document; one that is absent stays absent."""
    return {name: document[name] for name in names if name in document}


def quad(prefix: str, document: Mapping[str, Any], source: str | None = None) -> Document:
    """The four fields of a quad under this prefix, from a document that has them under it or under `source`."""
    return {f"{prefix}{name}": document[f"{source or prefix}{name}"] for name in QUAD}


def quint(prefix: str, document: Mapping[str, Any], source: str | None = None) -> Document:
    """The five fields of a quint; see `quad`."""
    return {f"{prefix}{name}": document[f"{source or prefix}{name}"] for name in QUINT}


def named(prefix: str, identity: Quad) -> Document:
    """The four fields of a quad under this prefix."""
    values = (identity.ref, identity.schema_version, identity.digest_algorithm_version, identity.digest)
    return {f"{prefix}{name}": value for name, value in zip(QUAD, values, strict=True)}
