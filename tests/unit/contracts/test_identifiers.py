"""Names and identifiers: one written alphabet, refused and never repaired."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID, uuid4

import pytest

from seapost.contracts import identifiers
from seapost.contracts.envelope import Aggregate, Correlation, Tenant, new_event_id
from seapost.model.errors import ContractError


@pytest.mark.req("F11", "REF-12")
@pytest.mark.parametrize(
    "value",
    [
        "order-17",
        "a",
        "x" * 200,
        "Gr\u00f6\u00dfe",
        "\u65e5\u672c\u8a9e",
        "a b",
        "acme/eu:1",
        "\U0001f600",
        "caf\u00e9",
    ],
)
def test_an_identifier_is_kept_exactly(value: str) -> None:
    """Any script, inner blanks and case are allowed, and nothing of them is changed."""
    assert identifiers.check_identifier(value) == value
    assert Tenant("user", value, "w").document["tenantId"] == value


@pytest.mark.req("F11", "REF-12")
@pytest.mark.parametrize(
    "value",
    [
        "",
        "x" * 201,
        " a",
        "a ",
        "a\u00a0",
        "cafe\u0301",
        "\u212a",
        "a\u200bb",
        "\u202ea",
        "a\nb",
        "a\x00",
        "\x7f",
        "\ud83d",
    ],
)
def test_a_lookalike_is_refused_at_every_door(value: str) -> None:
    """Decomposed letters, the Kelvin sign, invisible characters and outer blanks are refused, never repaired."""
    doors = [
        lambda: Aggregate("order", value, 1),
        lambda: Tenant("user", value, "w"),
        lambda: Tenant("user", "t", value),
        lambda: Tenant("user", "t", "w", value),
        lambda: Correlation(value),
        lambda: Correlation("c", causation_id=value),
        lambda: Correlation("c", operation_id=value),
    ]
    for door in doors:
        with pytest.raises(ContractError) as caught:
            _ = door()
        assert caught.value.rule == "identifier"
        assert caught.value.pointer.count("/") == 2


@pytest.mark.req("AMB-14")
@pytest.mark.parametrize("value", ["1", "2.0", "10.0.3"])
def test_a_version_is_a_string_of_digits_and_points(value: str) -> None:
    """`2.0` and `2` are two versions, because versions are strings."""
    assert identifiers.check_version(value) == value


@pytest.mark.req("AMB-14")
@pytest.mark.parametrize("value", [2, 2.0, None, "", "v1", "1.", ".1", "1\n", "1" * 33, "\u0661"])
def test_anything_else_is_no_version(value: object) -> None:
    """A number in place of a version is refused: canonical JSON would turn `2.0` into `2`."""
    with pytest.raises(ContractError) as caught:
        _ = identifiers.check_version(value)  # pyright: ignore[reportArgumentType]
    assert caught.value.rule in {"schema_version", "wrong_type"}


@pytest.mark.req("REF-01")
@pytest.mark.parametrize("value", ["order.placed@1", "run.created@2.0", "a", "billing.case-resolution_x.applied@1"])
def test_an_event_type_is_an_exact_literal(value: str) -> None:
    """Lower case, with points, hyphens and perhaps a version after `@`."""
    assert identifiers.check_event_type(value) == value


@pytest.mark.req("REF-01")
@pytest.mark.parametrize("value", ["", "Order", "1a", "a@", "a@x", "a b", "a*", "a@1@2", "a\n", "\u212a", "a" * 201])
def test_anything_else_is_no_event_type(value: str) -> None:
    """No capitals, wildcards, white space or letters of other scripts."""
    with pytest.raises(ContractError) as caught:
        _ = identifiers.check_event_type(value)
    assert caught.value.rule == "event_type"


@pytest.mark.req("REF-01")
def test_an_event_id_is_a_uuid_of_version_7_in_one_spelling() -> None:
    """Fresh ids are version 7 and grow; other versions and other spellings are refused."""
    ids = [new_event_id() for _ in range(100)]
    assert all(isinstance(one, UUID) and one.version == 7 for one in ids)
    assert ids == sorted(ids)
    text = str(ids[0])
    assert identifiers.check_event_id(text) == ids[0]
    for spelling in (text.upper(), text.replace("-", ""), f"{{{text}}}", str(uuid4()), "", 7):
        with pytest.raises(ContractError) as caught:
            _ = identifiers.check_event_id(spelling)  # pyright: ignore[reportArgumentType]
        assert caught.value.rule == "event_id"


@pytest.mark.req("REF-01", "F12")
def test_a_moment_has_one_spelling() -> None:
    """Every zone is written as the same UTC text with six decimals, and only that text is read."""
    moment = datetime(2026, 3, 29, 3, 30, tzinfo=timezone(timedelta(hours=2)))
    text = identifiers.write_timestamp(moment)
    assert text == "2026-03-29T01:30:00.000000Z"
    assert identifiers.read_timestamp(text) == moment
    assert identifiers.read_timestamp(text).tzinfo == UTC
    assert identifiers.write_timestamp(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00.000000Z"


@pytest.mark.req("F12")
def test_a_time_without_zone_is_refused() -> None:
    """Whose clock it was is never guessed."""
    with pytest.raises(ContractError) as caught:
        _ = identifiers.write_timestamp(datetime(2026, 3, 29, 2, 30))  # noqa: DTZ001 - the point of the test
    assert caught.value.rule == "time_without_zone"
    with pytest.raises(ContractError):
        _ = identifiers.write_timestamp(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))))


@pytest.mark.req("F12")
@pytest.mark.parametrize(
    "text",
    [
        "2026-03-29T01:30:00Z",
        "2026-03-29T01:30:00.000000+00:00",
        "2026-03-29 01:30:00.000000Z",
        "2026-02-30T01:30:00.000000Z",
        "2026-03-29T24:30:00.000000Z",
        "2026-03-29T01:30:00.0000000Z",
        "1774747800",
        1774747800,
    ],
)
def test_another_spelling_of_a_moment_is_refused(text: object) -> None:
    """No offset, no missing decimals, no date that does not exist, no seconds since 1970."""
    with pytest.raises(ContractError) as caught:
        _ = identifiers.read_timestamp(text)  # pyright: ignore[reportArgumentType]
    assert caught.value.rule == "timestamp"


@pytest.mark.parametrize(
    ("value", "valid"),
    [
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", True),
        ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", False),
        ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", False),
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", False),
        ("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", False),
        ("", False),
    ],
)
def test_a_traceparent_follows_w3c_trace_context(value: str, *, valid: bool) -> None:
    """The forbidden version and the all-zero ids are refused, as the W3C recommendation demands."""
    assert identifiers.is_traceparent(value) is valid


@pytest.mark.req("REF-12")
@pytest.mark.parametrize("revision", [0, -1, 2**53, True, 1.0, "1"])
def test_a_revision_counts_from_one(revision: object) -> None:
    """A revision is a positive safe integer; a boolean or a string is none."""
    with pytest.raises(ContractError) as caught:
        _ = Aggregate("order", "17", revision)  # pyright: ignore[reportArgumentType]
    assert (caught.value.rule, caught.value.pointer) == ("revision", "/aggregate/revision")
