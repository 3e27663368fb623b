"""The receipts of a fold: by a template where the type says nothing but which event it is about.

A receipt that its class assembles costs as much as the whole rest of a set-based fold. Where no handler adds anything,
the candidates of one pair differ in event and digest alone, so one assembled sample serves all; the first real receipt
of each pair is assembled as well, and compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seapost.contracts.receipts import Receipt
from seapost.inbox.receipts import ReceiptSubject
from seapost.model.errors import ContractError

if TYPE_CHECKING:
    from seapost.inbox.decided import DecidedReceipts

_EVENT_ID: Final = "00000000-0000-7000-8000-00000000feed"
_DIGEST: Final = "feed" * 16


class ReceiptTemplates:
    """Writes the candidates of receipts that follow from their event alone.

    Args:
        receipts: of the projection's inbox.
        model: the receipt type.
    """

    def __init__(self, receipts: DecidedReceipts, model: type[Receipt]) -> None:
        self._receipts = receipts
        self._model = model
        self._templates: dict[tuple[str, str], bytes] = {}

    def candidate(self, subject: ReceiptSubject, committed_at: str) -> bytes:
        """The canonical bytes that the digest of the receipt covers.

        Raises:
            ContractError: the template does not write what the class assembles.
        """
        pair = (subject.event_type, subject.schema_version)
        template = self._templates.get(pair)
        if template is not None:
            return _filled(template, subject)
        sample = ReceiptSubject(_EVENT_ID, subject.event_type, subject.schema_version, _DIGEST)
        template = self._assembled(sample, committed_at)
        candidate = self._assembled(subject, committed_at)
        if _filled(template, subject) != candidate:
            message = f"{self._model.__name__} cannot be written from its event alone"
            raise ContractError(message, rule="receipt_template")
        self._templates[pair] = template
        return candidate

    def _assembled(self, subject: ReceiptSubject, committed_at: str) -> bytes:
        return self._model.assemble(**self._receipts.common(subject, committed_at)).candidate_bytes()


def _filled(template: bytes, subject: ReceiptSubject) -> bytes:
    event_id, digest = subject.event_id.encode(), subject.digest.encode()
    return template.replace(_EVENT_ID.encode(), event_id).replace(_DIGEST.encode(), digest)
