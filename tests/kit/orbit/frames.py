"""Holds frames against the published message schema, as a client in another language would."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from typing import Any, Final, cast

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from tests.kit.tree import ROOT

SCHEMA_PATH: Final = ROOT / "docs" / "schemas" / "orbit.events.v1.schema.json"
DIGITS_MAX: Final = 4000
"""Python reads no longer whole numbers by itself."""


def _pattern(_validator: Validator, pattern: str, instance: object, _schema: object) -> Iterator[ValidationError]:
    """ECMA 262: the dollar sign is the end of the text, and a digit is an ASCII digit."""
    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance, re.ASCII):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def parsed(text: str) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """A frame as a value; numbers of any length are read."""
    return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < DIGITS_MAX else Decimal(digits))


@cache
def schema() -> dict[str, Any]:
    """The committed schema."""
    return json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))


@cache
def validator(*names: str) -> Validator:
    """A validator for the named messages, or for every message."""
    document = schema()
    if names:
        document = document | {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in names]}
    extend = cast("Any", validators).extend
    return extend(Draft202012Validator, {"pattern": _pattern})(document)


def is_valid(frame: Any, *names: str) -> bool:  # noqa: ANN401 - JSON has no narrower type
    """Whether a parsed frame is one of the named messages."""
    return validator(*names).is_valid(frame)


def assert_valid(texts: list[str], *names: str) -> None:
    """Every frame is valid; says which is not, without a frame's values."""
    for place, text in enumerate(texts):
        frame = parsed(text)
        assert is_valid(frame, *names), f"frame {place} ({frame.get('type')}) breaks the schema"
