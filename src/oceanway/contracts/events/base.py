"""The payload base: written in camel case, and able to name the fact it announces (AMB-41)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from seapost.contracts.events import Event


class OwnerEvent(Event):
    """The payload of an owner's event."""

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel)

    def source_fact_key(self) -> str:
        """The reference of the one fact that this event announces (AMB-41)."""
        raise NotImplementedError
