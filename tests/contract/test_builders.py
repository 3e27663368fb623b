"""The documents that tests build with `rfc8785` alone are documents that the contracts of Seapost accept."""

from __future__ import annotations

import json

from seapost.contracts.delivery_set import DeliverySetDefinition
from seapost.contracts.envelope import read_envelope
from tests.kit import builders


def test_the_usual_envelope_is_a_canonical_event_envelope() -> None:
    """The library reads the builder's bytes and finds the same id and digest."""
    text = builders.envelope(builders.SHIPPED)
    envelope = read_envelope(text)
    assert (envelope.event_id, envelope.digest) == (builders.event_id_of(text), builders.digest(text))


def test_the_usual_definition_is_a_delivery_set_definition() -> None:
    """The builder's bytes are exactly the candidate of a definition with their digest."""
    candidate = builders.definition()
    document = json.loads(candidate) | {"deliverySetDefinitionDigest": builders.digest(candidate).hex()}
    definition = DeliverySetDefinition.decode(document)
    assert definition.candidate_bytes() == candidate
