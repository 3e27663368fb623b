"""Event classes and the registry that reads payloads by their exact pair."""

from __future__ import annotations

import pytest

from seapost.contracts.events import Event, EventRegistry
from seapost.model.errors import ContractError, UnknownContract
from tests.kit.contracts import OrderPlaced


class OrderPlacedLater(Event, type="order.placed@2.0", version="2.1", producer="shop", aggregate="basket"):
    """The same fact in a newer form, with everything said."""

    order_id: str


def test_a_class_says_what_the_envelope_needs() -> None:
    """The version follows the type's `@`, the aggregate is the type's first part, unless the class says otherwise."""
    assert (OrderPlaced.event_type, OrderPlaced.event_schema_version) == ("order.placed@1", "1")
    assert (OrderPlaced.event_producer, OrderPlaced.aggregate_kind) == ("shop", "order")
    assert OrderPlacedLater.event_schema_version == "2.1"
    assert OrderPlacedLater.aggregate_kind == "basket"


@pytest.mark.parametrize(
    ("keywords", "pointer"),
    [
        ({"type": "Order Placed"}, "/type"),
        ({"type": "a.b", "version": "x"}, "/version"),
        ({"type": "a.b", "producer": "Shop"}, "/producer"),
        ({"type": "a.b", "aggregate": ""}, None),
        ({"type": "a.b", "aggregate": "A"}, "/aggregate"),
    ],
)
def test_a_wrong_keyword_fails_where_the_class_is_written(keywords: dict[str, str], pointer: str | None) -> None:
    """A misspelled type or name is refused at import, not at the first append; an empty aggregate means the default."""
    if pointer is None:
        assert type("Made", (Event,), {"__module__": __name__}, **keywords).aggregate_kind == "a"
        return
    with pytest.raises(ContractError) as caught:
        _ = type("Made", (Event,), {"__module__": __name__}, **keywords)
    assert caught.value.pointer == pointer


@pytest.mark.req("SET-39")
def test_a_payload_is_read_by_its_exact_pair() -> None:
    """The registered pair gives the class; the payload is read strictly."""
    registry = EventRegistry(OrderPlaced, OrderPlacedLater)
    event = registry.decode("order.placed@1", "1", {"order_id": "17", "count": 1})
    assert event == OrderPlaced(order_id="17", count=1)
    assert list(registry) == [OrderPlaced, OrderPlacedLater]
    assert ("order.placed@1", "1") in registry
    with pytest.raises(ContractError):
        _ = registry.decode("order.placed@1", "1", {"order_id": "17", "count": 1, "more": 2})


@pytest.mark.req("SET-39", "NEG-06")
@pytest.mark.parametrize(
    "pair",
    [
        ("order.placed@1", "1.0"),
        ("order.placed@1", "2"),
        ("order.placed@2", "1"),
        ("order.placed", "1"),
        ("Order.Placed@1", "1"),
        ("order.placed@1 ", "1"),
    ],
)
def test_a_similar_pair_is_unknown(pair: tuple[str, str]) -> None:
    """No prefix, newer version, other case or near name is ever tried."""
    with pytest.raises(UnknownContract) as caught:
        _ = EventRegistry(OrderPlaced, OrderPlacedLater).decode(*pair, {"order_id": "17", "count": 1})
    assert caught.value.rule == "unknown_event"


def test_two_classes_cannot_share_a_pair() -> None:
    """The second class of a pair is refused, the same class again is not; a base class has no pair."""
    registry = EventRegistry(OrderPlaced)
    assert registry.register(OrderPlaced) is OrderPlaced
    assert len(registry) == 1
    twin: type[Event] = type("Twin", (Event,), {"__module__": __name__}, type="order.placed@1")
    with pytest.raises(ContractError) as caught:
        _ = registry.register(twin)
    assert caught.value.rule == "registered_twice"
    with pytest.raises(ContractError, match='type="'):
        _ = registry.register(Event)
