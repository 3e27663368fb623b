"""Published test vectors, and the check that this release still agrees with every one of them (SET-15, REF-03).

A golden is a file `goldens/<Type>@<version>/<case>.json` with the fields

- `raw`: JSON text in any legal spelling,
- `canonicalBytesHex`: the canonical bytes of what the digest covers: the whole document or, for a
  content-addressed one, its candidate,
- `digest`: SHA-256 of these bytes; a content-addressed document holds the same value as its own digest.

The type `CanonicalJson` is any document. Under `CanonicalJsonRefused` a file has `raw`, `rule` and
`pointer`: text that every implementation must refuse. The files are data for other languages; the suite
runs them through an independent implementation in JavaScript.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, cast

from seapost.contracts.canonical import check_canonical, encode, parse
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.contract_set import ContractSet, kernel_contracts
from seapost.contracts.delivery_set import DeliverySetDefinition
from seapost.contracts.digest import sha256_hex
from seapost.model.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from seapost.contracts.contract import StrictModel

CANONICAL_JSON = "CanonicalJson@1"
REFUSED_JSON = "CanonicalJsonRefused@1"


@dataclass(frozen=True, slots=True)
class Golden:
    """One published vector. `fields` is the content of its file."""

    title: str
    case: str
    fields: dict[str, str]


@dataclass(frozen=True, slots=True)
class GoldenResult:
    """The outcome for one vector; `problem` is None when this release agrees with it."""

    title: str
    case: str
    problem: str | None


def read_goldens(root: Traversable | None = None) -> Iterator[Golden]:
    """The vectors under `root`, by default those packaged with Seapost, in the order of their names."""
    folder = files("seapost.contracts") / "goldens" if root is None else root
    for kind in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if not kind.is_dir():
            continue
        for case in sorted(kind.iterdir(), key=lambda entry: entry.name):
            if case.name.endswith(".json"):
                fields = cast("dict[str, str]", parse(case.read_bytes()))
                yield Golden(kind.name, case.name.removesuffix(".json"), fields)


def verify_goldens(root: Traversable | None = None, contracts: ContractSet | None = None) -> list[GoldenResult]:
    """Check every vector in both directions: from the text to bytes and digest, and back from the bytes.

    Args:
        root: folder of the vectors; absent, those packaged with Seapost.
        contracts: the contracts they are read by; absent, the kernel's.
    """
    known = kernel_contracts() if contracts is None else contracts
    return [GoldenResult(golden.title, golden.case, _problem(golden, known)) for golden in read_goldens(root)]


def _problem(golden: Golden, contracts: ContractSet) -> str | None:
    try:
        if golden.title == REFUSED_JSON:
            return _refusal_problem(golden)
        return _canonical_problem(golden, contracts)
    except KeyError as error:
        return f"the file lacks {error}"
    except (ContractError, ValueError) as error:
        return str(error)


def _refusal_problem(golden: Golden) -> str | None:
    expected = (golden.fields["rule"], golden.fields["pointer"])
    try:
        _ = parse(golden.fields["raw"])
    except ContractError as error:
        found = (error.rule, error.pointer)
        return None if found == expected else f"refused by {found}, not by {expected}"
    return "accepted, but must be refused"


def _canonical_problem(golden: Golden, contracts: ContractSet) -> str | None:
    published = bytes.fromhex(golden.fields["canonicalBytesHex"])
    if _covered(golden, contracts) != published:
        return "raw has other canonical bytes"
    if encode(check_canonical(published)) != published:
        return "the canonical bytes do not read back"
    if sha256_hex(published) != golden.fields["digest"]:
        return "the canonical bytes have another digest"
    return None


def _covered(golden: Golden, contracts: ContractSet) -> bytes:
    """The bytes this release digests for the vector, read and written again by its contract."""
    raw = golden.fields["raw"]
    if golden.title == CANONICAL_JSON:
        return encode(parse(raw))
    model = contracts.get(golden.title)
    if model is None:
        message = "no contract is published under this name"
        raise ValueError(message)
    document = _decode(model, raw)
    if document.canonical() != encode(parse(raw)):
        message = "the contract writes other bytes than it read"
        raise ValueError(message)
    if not isinstance(document, ContentAddressed):
        return document.canonical()
    if document.quad().digest != golden.fields["digest"]:
        message = "the document holds another digest"
        raise ValueError(message)
    return document.candidate_bytes()


def _decode(model: type[StrictModel], raw: str) -> StrictModel:
    """Vectors of a delivery set may name receipt types that only an application registers."""
    if issubclass(model, DeliverySetDefinition):
        return model.decode(raw, receipts=None)
    return model.decode(raw)
