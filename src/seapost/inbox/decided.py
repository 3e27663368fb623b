"""The receipts of a deciding inbox: checked before they are stored, and put together again for ever after.

The database keeps the candidate, the reference and the time of the commit. Everything else that the digest leaves out
must follow from these three, so that every redelivery gets the same bytes (DLV-14, DLV-20).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from seapost.contracts.ack import ack_bytes
from seapost.contracts.canonical import check_canonical, encode
from seapost.contracts.digest import ALGORITHM, sha256_hex
from seapost.contracts.identifiers import write_timestamp
from seapost.contracts.receipts import Receipt
from seapost.model.errors import ContractError, InvalidSetting
from seapost.model.outcome import Acknowledged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seapost.contracts.envelope import Envelope
    from seapost.contracts.examination import JSONValue
    from seapost.contracts.receipt_registry import ReceiptType
    from seapost.inbox.receipts import ReceiptSubject
    from seapost.model.delivery_set import ProjectionTarget

KEY_LENGTH_MAX: Final = 100


class Decided(NamedTuple):
    """A receipt that may be stored: its reference, what its digest covers, and the answer it makes."""

    reference: str
    candidate: bytes
    answer: Acknowledged


class DecidedReceipts:
    """Checks and rebuilds the receipts of one inbox.

    Raises:
        InvalidSetting: the type proves a projection and no target is given, or the reverse; the moment is no field of
            the receipt; or its digest leaves out what could not be told from the stored form.
    """

    def __init__(
        self,
        kind: ReceiptType,
        *,
        moment: str,
        consumer_name: str,
        destination: str,
        key: str,
        target: ProjectionTarget | None,
    ) -> None:
        addressing = kind.model.addressing
        names = addressing.python
        if moment not in kind.model.model_fields:
            raise InvalidSetting(f"{kind.name} has no field {moment} for the time of the commit.")
        if kind.is_projection is not (target is not None):
            raise InvalidSetting(f"{kind.name} and the projection of the inbox {consumer_name} do not belong together.")
        if len(key) > KEY_LENGTH_MAX:
            raise InvalidSetting(f"Receipts are kept under a key of at most {KEY_LENGTH_MAX} characters, not {key}.")
        outside = {names[name] for name in addressing.outside}
        self._reference_field = names[addressing.ref]
        self._restored = outside & {self._reference_field, moment}
        if outside - self._restored - {names[addressing.digest]}:
            raise InvalidSetting(f"The digest of {kind.name} leaves out more than its reference and {moment}.")
        self.receipt_type = kind.name
        self.schema_version = kind.schema_version
        self._kind = kind
        self._moment = moment
        self._key = key
        self._fixed: Mapping[str, str] = {"destination": destination, "consumer_name": consumer_name}
        if target is not None:
            self._fixed = {**self._fixed, "projection_name": target.name, "projection_version": target.version}

    def reference(self, subject: ReceiptSubject) -> str:
        """Named after what it proves: one consumer, one event."""
        return f"{self._key}:{subject.event_id}"

    def candidate(self, subject: ReceiptSubject) -> bytes:
        """Nothing: what was decided only the handler can say."""
        _ = subject
        return b""

    def common(self, subject: ReceiptSubject, committed_at: str) -> dict[str, str]:
        """The fields, by Python name, whose values no handler chooses."""
        return {
            **self._fixed,
            **_subject_fields(subject),
            self._reference_field: self.reference(subject),
            self._moment: committed_at,
        }

    def check(self, receipt: object, expected: Mapping[str, str], envelope: Envelope) -> Decided:
        """The receipt in the form it is stored and answered in.

        Raises:
            ContractError: it is of another class, about another event, or one that the dispatcher would refuse.
        """
        model = self._kind.model
        if type(receipt) is not model or not isinstance(receipt, model):
            message = f"The handler returned {type(receipt).__name__} and not {self._kind.name}"
            raise ContractError(message, rule="receipt_class")
        addressing = receipt.addressing
        for name, value in expected.items():
            if getattr(receipt, name) != value:
                message = f"The {self._kind.name} that the handler returned does not belong to its event"
                raise ContractError(message, pointer=f"/{name}", rule="receipt_field")
        if self._kind.compare is not None:
            self._kind.compare(receipt, envelope)
        document = receipt.to_json()
        candidate = encode({name: item for name, item in document.items() if name not in addressing.outside})
        if document[addressing.digest] != sha256_hex(candidate):
            message = f"The digest of the {self._kind.name} that the handler returned is not that of its content"
            raise ContractError(message, pointer=f"/{addressing.digest}", rule="digest")
        reference = str(document[addressing.ref])
        return Decided(reference, candidate, Acknowledged(encode(document), ack_bytes(self._kind, receipt)))

    def answer(
        self, subject: ReceiptSubject, *, candidate: bytes, reference: str, committed_at: datetime
    ) -> Acknowledged:
        """Receipt and acknowledgement of a stored receipt."""
        _ = subject
        receipt = self.restore(candidate, reference=reference, committed_at=committed_at)
        return Acknowledged(receipt.canonical(), ack_bytes(self._kind, receipt))

    def restore(self, candidate: bytes, *, reference: str, committed_at: datetime) -> Receipt:
        """A stored receipt.

        Raises:
            ContractError: this release does not read it.
        """
        stored = {self._reference_field: reference, self._moment: write_timestamp(committed_at)}
        outside: dict[str, JSONValue] = {name: stored[name] for name in self._restored}
        return self._kind.model.from_candidate(candidate, **outside)

    def is_about(self, subject: ReceiptSubject, candidate: bytes) -> bool:
        """Whether a stored candidate is of this inbox and about exactly this event."""
        document = check_canonical(candidate)
        wire = {python: name for name, python in self._kind.model.addressing.python.items()}
        stated = {**self._fixed, **_subject_fields(subject)}
        expected = {wire[name]: value for name, value in stated.items() if name in wire}
        return isinstance(document, dict) and all(document.get(name) == value for name, value in expected.items())


def _subject_fields(subject: ReceiptSubject) -> dict[str, str]:
    return {
        "event_id": subject.event_id,
        "event_type": subject.event_type,
        "event_schema_version": subject.schema_version,
        "event_envelope_digest_algorithm_version": ALGORITHM,
        "event_envelope_sha256": subject.digest,
    }
