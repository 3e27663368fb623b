"""The settlement input that metering hands to billing, and what billing records about its use (REF-32, REF-33)."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.base import Contract
from oceanway.contracts.conflicts import ConflictFields
from oceanway.contracts.fields import Currency, Quantity
from oceanway.contracts.identity import ALGORITHM, det, digest_of
from oceanway.contracts.order import ascending, require, require_equal
from oceanway.contracts.quads import (
    CurrentValidationReceiptQuad,
    EligibilityDecisionQuad,
    MeterEventQuad,
    SettlementInputConflictFactQuad,
)
from oceanway.contracts.quads_billing import SettlementConsumptionQuad
from oceanway.contracts.quints import OptionalSettlementInput, SettlementInputQuint
from oceanway.contracts.subject import DimensionFields
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.fields import Algorithm, Digest, Identifier, Timestamp

IDENTITIES_MAX: Final = 4096


@lru_cache(maxsize=IDENTITIES_MAX)
def settlement_dimension_id(
    billing_reservation_id: str, run_step_id: str, execution_attempt_id: str, charge_dimension_key: str
) -> str:
    """The identity of one charge dimension of an attempt in all of metering and billing (REF-32)."""
    return det("settlement_dimension", billing_reservation_id, run_step_id, execution_attempt_id, charge_dimension_key)


@lru_cache(maxsize=IDENTITIES_MAX)
def _economic_digest(dimension_id: str, key: str, unit: str, currency: str, book: str, version: str) -> str:
    return digest_of(
        {
            "settlementDimensionId": dimension_id,
            "chargeDimensionKey": key,
            "quantityUnit": unit,
            "currency": currency,
            "priceBookRef": book,
            "priceBookVersion": version,
            "settlementEconomicIdentityDigestAlgorithmVersion": ALGORITHM,
        }
    )


class SettlementEconomicIdentity(Contract):
    """What a dimension means in money: its unit, currency and price (REF-33). Make one with `of`."""

    settlement_dimension_id: Identifier
    charge_dimension_key: Identifier
    quantity_unit: Identifier
    currency: Currency
    price_book_ref: Identifier
    price_book_version: Identifier
    settlement_economic_identity_digest_algorithm_version: Algorithm
    settlement_economic_identity_digest: Digest

    @classmethod
    def of(
        cls,
        *,
        settlement_dimension_id: str,
        charge_dimension_key: str,
        quantity_unit: str,
        currency: str,
        price_book_ref: str,
        price_book_version: str,
    ) -> Self:
        """Build the identity with its digest."""
        digest = _economic_digest(
            settlement_dimension_id, charge_dimension_key, quantity_unit, currency, price_book_ref, price_book_version
        )
        return cls(
            settlement_dimension_id=settlement_dimension_id,
            charge_dimension_key=charge_dimension_key,
            quantity_unit=quantity_unit,
            currency=currency,
            price_book_ref=price_book_ref,
            price_book_version=price_book_version,
            settlement_economic_identity_digest_algorithm_version="jcs-sha256-v1",
            settlement_economic_identity_digest=digest,
        )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        expected = _economic_digest(
            self.settlement_dimension_id,
            self.charge_dimension_key,
            self.quantity_unit,
            self.currency,
            self.price_book_ref,
            self.price_book_version,
        )
        require_equal(self.settlement_economic_identity_digest, expected, "/settlementEconomicIdentityDigest", "digest")
        return self


class EconomicFields(DimensionFields):
    """One dimension with its economic meaning; the two say the same (CASE-28)."""

    settlement_economic_identity: SettlementEconomicIdentity

    @property
    def dimension_id(self) -> str:
        """The settlement dimension this is about."""
        return self.settlement_economic_identity.settlement_dimension_id

    @model_validator(mode="after")
    def _one_dimension(self) -> Self:
        identity = self.settlement_economic_identity
        expected = settlement_dimension_id(
            self.billing_reservation_id, self.run_step_id, self.execution_attempt_id, self.charge_dimension_key
        )
        place = "/settlementEconomicIdentity/settlementDimensionId"
        require_equal(identity.settlement_dimension_id, expected, place, "deterministic_id")
        place = "/settlementEconomicIdentity/chargeDimensionKey"
        require_equal(identity.charge_dimension_key, self.charge_dimension_key, place, "dimension")
        return self


class SettlementDimensionFields(DimensionFields):
    """One dimension with its deterministic identity."""

    settlement_dimension_id: Identifier

    @model_validator(mode="after")
    def _one_dimension_id(self) -> Self:
        expected = settlement_dimension_id(
            self.billing_reservation_id, self.run_step_id, self.execution_attempt_id, self.charge_dimension_key
        )
        require_equal(self.settlement_dimension_id, expected, "/settlementDimensionId", "deterministic_id")
        return self


def require_predecessor(predecessor: OptionalSettlementInput, state_version: int) -> None:
    """The predecessor of version 1 is none, of any later one exactly one version lower (AMB-36)."""
    version = predecessor.settlement_input_state_version if predecessor.state == "present" else 0
    require(state_version == version + 1, "The predecessor is exactly one version lower", "/predecessor", "predecessor")


class SettlementInputSnapshot(
    SettlementInputQuint,
    SettlementDimensionFields,
    EconomicFields,
    EligibilityDecisionQuad,
    ContentAddressed,
    prefix="settlementInputSnapshot",
    outside=("createdAt",),
):
    """How much of one dimension is to be charged, at one state version."""

    predecessor: OptionalSettlementInput
    meter_events: Annotated[list[MeterEventQuad], ascending("meter_event_ref")]
    quantity: Quantity
    created_at: Timestamp

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_predecessor(self.predecessor, self.settlement_input_state_version)
        return self


class ConsumerTransition(Contract):
    """A transition used the input."""

    kind: Literal["settlement_transition"] = "settlement_transition"
    settlement_transition_ref: Identifier


class ConsumerFinalization(Contract):
    """The finalization used the input."""

    kind: Literal["billing_finalization"] = "billing_finalization"
    billing_finalization_fact_ref: Identifier


class SettlementConsumption(
    SettlementConsumptionQuad,
    SettlementInputQuint,
    CurrentValidationReceiptQuad,
    ContentAddressed,
    prefix="settlementConsumption",
    outside=("consumedAt",),
):
    """One use of one settlement input by one booking (REF-48)."""

    consumer: Annotated[ConsumerTransition | ConsumerFinalization, Field(discriminator="kind")]
    consumed_at: Timestamp


class SettlementInputConflictFact(
    SettlementInputConflictFactQuad,
    SettlementDimensionFields,
    SettlementInputQuint,
    ConflictFields,
    ContentAddressed,
    prefix="settlementInputConflictFact",
    outside=("detectedAt",),
):
    """Two claims about one settlement input exclude each other; the quint is the conflicting one (REF-49)."""
