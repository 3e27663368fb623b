"""Everything OceanWay publishes: for the export of JSON Schema and TypeScript, and for the goldens (REF-03)."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final, cast

from oceanway.contracts.events import EVENTS
from oceanway.contracts.facts.catch_up import BillingSettlementCatchUpFence
from oceanway.contracts.facts.finalization import BillingFinalizationFence
from oceanway.contracts.facts.metering import EligibilityBasis
from oceanway.contracts.facts.settlement import SettlementEconomicIdentity
from oceanway.contracts.receipts.registry import RECEIPTS
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.contract_set import ContractSet, Published, kernel_contracts

_MODULES: Final = (
    "facts.admission",
    "facts.cases",
    "facts.execution",
    "facts.finalization",
    "facts.gateway",
    "facts.metering",
    "facts.resolution",
    "facts.settlement",
    "facts.transitions",
    "works.catch_up",
    "works.finalization",
    "works.metering",
)


@cache
def contracts() -> ContractSet:
    """Every content-addressed contract, the embedded ones with a name, the acknowledgement and the payloads."""
    kernel = kernel_contracts(RECEIPTS, EVENTS)
    entries = {entry.title: entry for entry in kernel.contracts}
    embedded = (
        EligibilityBasis,
        SettlementEconomicIdentity,
        BillingFinalizationFence,
        BillingSettlementCatchUpFence,
    )
    for model in (*_content_addressed(), *embedded):
        entry = Published(model.__name__, "1", model)
        entries[entry.title] = entry
    return ContractSet(
        name="oceanway",
        contracts=tuple(sorted(entries.values(), key=lambda entry: (entry.name, entry.version))),
        events=kernel.events,
    )


def _content_addressed() -> list[type[ContentAddressed]]:
    found: list[type[ContentAddressed]] = []
    for name in _MODULES:
        module = import_module(f"oceanway.contracts.{name}")
        for value in cast("dict[str, object]", vars(module)).values():
            is_class = isinstance(value, type) and issubclass(value, ContentAddressed)
            if is_class:
                model = cast("type[ContentAddressed]", value)
                if model.__module__ == module.__name__ and hasattr(model, "addressing"):
                    found.append(model)
    return found


CONTRACTS: Final = contracts()
"""The contract set, as the exporters take it."""
