"""Validation accepts or refuses; it never rewrites (F12)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from pydantic import BaseModel, JsonValue

from seapost.contracts.canonical import encode, parse
from seapost.contracts.digest import digest_of
from seapost.contracts.events import Event, EventPart
from seapost.model.errors import CanonicalError, ContractError


class Line(EventPart):
    """A nested structure."""

    sku: str
    count: int


class Everything(Event, type="test.everything@1"):
    """One optional field of each kind, so that a test can send a single one."""

    count: int | None = None
    flag: bool | None = None
    text: str | None = None
    weight: float | None = None
    moment: datetime | None = None
    day: date | None = None
    clock: time | None = None
    pause: timedelta | None = None
    total: Decimal | None = None
    identity: UUID | None = None
    moments: list[datetime] | None = None
    lines: tuple[Line, ...] | None = None
    extra: dict[str, JsonValue] | None = None


@pytest.mark.req("F12")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"count":12}', 12),
        ('{"count":1.0}', 1),
        ('{"count":1e2}', 100),
        ('{"flag":true}', True),
        ('{"weight":1}', 1.0),
        ('{"weight":0.5}', 0.5),
        ('{"moment":"2026-03-29T02:30:00Z"}', datetime(2026, 3, 29, 2, 30, tzinfo=UTC)),
        ('{"moment":"2026-03-29T02:30:00.5+02:00"}', datetime(2026, 3, 29, 0, 30, 0, 500_000, tzinfo=UTC)),
        ('{"moments":["2026-03-29T02:30:00Z"]}', [datetime(2026, 3, 29, 2, 30, tzinfo=UTC)]),
        ('{"day":"2026-03-29"}', date(2026, 3, 29)),
        ('{"clock":"02:30:00"}', time(2, 30)),
        ('{"pause":"PT30S"}', timedelta(seconds=30)),
        ('{"total":"19.90"}', Decimal("19.90")),
        ('{"lines":[{"sku":"A","count":2}]}', (Line(sku="A", count=2),)),
        ('{"extra":{"a":null}}', {"a": None}),
    ],
)
def test_what_is_accepted(text: str, value: object) -> None:
    """Each kind of field reads its one JSON form; a whole number is an integer however it is spelled."""
    (found,) = (item for item in vars(Everything.decode(text)).values() if item is not None)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.req("F12")
@pytest.mark.parametrize(
    ("text", "pointer", "rule"),
    [
        ('{"count":"12"}', "/count", "wrong_type"),
        ('{"count":" 12 "}', "/count", "wrong_type"),
        ('{"count":true}', "/count", "wrong_type"),
        ('{"count":1.5}', "/count", "wrong_type"),
        ('{"count":null}', "/count", "wrong_type"),
        ('{"flag":"yes"}', "/flag", "wrong_type"),
        ('{"flag":1}', "/flag", "wrong_type"),
        ('{"text":1}', "/text", "wrong_type"),
        ('{"text":null}', "/text", "wrong_type"),
        ('{"weight":"1.5"}', "/weight", "wrong_type"),
        ('{"weight":"NaN"}', "/weight", "wrong_type"),
        ('{"moment":1700000000}', "/moment", "spelling"),
        ('{"moment":"1700000000"}', "/moment", "spelling"),
        ('{"moment":"2026-03-29T02:30:00"}', "/moment", "spelling"),
        ('{"moment":"2026-03-29 02:30:00Z"}', "/moment", "spelling"),
        ('{"moment":"2026-03-29T02:30:00.1234567Z"}', "/moment", "spelling"),
        ('{"moment":null}', "/moment", "spelling"),
        ('{"moments":["2026-03-29T02:30:00Z","2026-03-29T02:30:00"]}', "/moments/1", "spelling"),
        ('{"day":"1700000000"}', "/day", "spelling"),
        ('{"day":"2026-02-30"}', "/day", "wrong_type"),
        ('{"clock":3600}', "/clock", "spelling"),
        ('{"pause":"1 day"}', "/pause", "spelling"),
        ('{"total":19.9}', "/total", "spelling"),
        ('{"total":" 1"}', "/total", "spelling"),
        ('{"total":"1_0"}', "/total", "spelling"),
        ('{"total":"NaN"}', "/total", "spelling"),
        ('{"lines":[{"sku":"A","count":2},{"sku":"B","count":"2"}]}', "/lines/1/count", "wrong_type"),
        ('{"lines":[{"sku":"A"}]}', "/lines/0/count", "missing_field"),
        ('{"lines":[{"sku":"A","count":2,"z/z":1}]}', "/lines/0/z~1z", "unknown_field"),
        ('{"zz":1}', "/zz", "unknown_field"),
    ],
)
def test_what_is_refused(text: str, pointer: str, rule: str) -> None:
    """No text becomes a number, no number a moment, no unknown field is dropped; the error names field and rule."""
    with pytest.raises(ContractError) as caught:
        _ = Everything.decode(text)
    assert (caught.value.pointer, caught.value.rule) == (pointer, rule)
    assert "Everything" in caught.value.message


@pytest.mark.req("F12", "F06")
@pytest.mark.parametrize("text", ['{"weight":9007199254740993}', '{"weight":NaN}', '{"weight":1e400}'])
def test_a_number_that_would_be_rounded_or_is_none_never_reaches_the_contract(text: str) -> None:
    """Even a float field takes no integer that a double cannot hold, and no NaN."""
    with pytest.raises(CanonicalError) as caught:
        _ = Everything.decode(text)
    assert caught.value.pointer == "/weight"


@pytest.mark.req("F12")
def test_an_error_repeats_no_value_of_the_payload() -> None:
    """A payload may hold what a log must not, so the message names the place and the rule only."""
    with pytest.raises(ContractError) as caught:
        _ = Everything.decode({"count": "hunter2"})
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.req("F12")
@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"count": "1"}, "/count"),
        ({"moment": datetime(2026, 3, 29, 2, 30)}, "/moment"),  # noqa: DTZ001 - the point of the test
        ({"moment": "2026-03-29T02:30:00Z"}, "/moment"),
        ({"weight": float("nan")}, "/weight"),
        ({"zz": 1}, "/zz"),
    ],
)
def test_a_producer_is_told_in_the_same_way(fields: dict[str, Any], pointer: str) -> None:
    """A wrong value in Python is a `ContractError` too, with the field's pointer, never a traceback of pydantic."""
    with pytest.raises(ContractError) as caught:
        _ = Everything(**fields)
    assert caught.value.pointer == pointer


@pytest.mark.req("F12", "REF-02")
def test_an_absent_optional_field_is_left_out() -> None:
    """None means absent: it is not on the wire, while a null inside free-form data is the sender's and stays."""
    assert Everything(count=1, text=None).to_json() == {"count": 1}
    assert Everything(extra={"a": None}).to_json() == {"extra": {"a": None}}
    assert Everything(lines=(Line(sku="A", count=2),)).canonical() == b'{"lines":[{"count":2,"sku":"A"}]}'


@pytest.mark.req("F12")
def test_the_digest_is_of_the_senders_document() -> None:
    """Reading a payload changes nothing of it: another spelling of a moment is another document."""
    first = parse('{"moment":"2026-03-29T02:30:00Z"}')
    second = parse('{"moment":"2026-03-29T02:30:00.000Z"}')
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert Everything.decode(first).moment == Everything.decode(second).moment
    assert digest_of(first) != digest_of(second)
    assert encode(second) == b'{"moment":"2026-03-29T02:30:00.000Z"}'


class Lax(BaseModel):
    """A plain pydantic model, which would read `"12"` as an integer."""

    count: int


class Loose(NamedTuple):
    """A named tuple."""

    sku: str


@dataclass
class Plain:
    """A standard dataclass."""

    count: int


@pytest.mark.req("F12")
@pytest.mark.parametrize("nested", [Lax, dict[str, Lax], list[Loose], Plain | None])
def test_a_nested_structure_must_be_as_strict_as_its_event(nested: object) -> None:
    """A field that would bring laxer rules is refused when the class is made, with the remedy."""
    with pytest.raises(TypeError, match="EventPart"):
        _ = type("Holder", (Event,), {"__annotations__": {"inner": nested}, "__module__": __name__})


@pytest.mark.req("F12")
def test_an_event_is_frozen() -> None:
    """What was checked cannot change before it is appended."""
    event = Everything(count=1)
    with pytest.raises(Exception, match="frozen"):
        event.count = 2  # pyright: ignore[reportAttributeAccessIssue]
