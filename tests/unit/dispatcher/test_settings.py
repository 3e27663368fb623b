"""Settings refuse themselves, naming the field and the rule."""

from __future__ import annotations

from typing import Any

import pytest

from seapost.dispatcher.settings import DestinationSettings, DispatcherSettings, pool_size
from seapost.model.errors import InvalidSetting


def test_defaults_are_legal() -> None:
    """The defaults keep their own rules, and no maximum of attempts is among them."""
    settings = DestinationSettings(name="billing")
    assert settings.max_attempts is None
    assert settings.renew_every_seconds == pytest.approx(20.0)
    assert DispatcherSettings().role_timeouts.statement_seconds == 30.0


@pytest.mark.req("CLM-11", "RTY-04")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Billing"),
        ("name", ""),
        ("name", 3),
        ("batch_size", 0),
        ("batch_size", 10_001),
        ("batch_size", 1.5),
        ("batch_size", True),
        ("lanes", 0),
        ("lanes", 65),
        ("lease_seconds", 0.05),
        ("lease_seconds", float("nan")),
        ("lease_seconds", float("inf")),
        ("lease_seconds", "60"),
        ("renew_before_seconds", 60.0),
        ("renew_before_seconds", 0.0),
        ("timeout_seconds", 0.0),
        ("backoff_min_seconds", 0.0),
        ("backoff_base_seconds", 0.05),
        ("backoff_max_seconds", 0.5),
        ("backoff_max_seconds", 2_592_001.0),
        ("retry_after_max_seconds", 0.01),
        ("max_attempts", 0),
        ("rate_per_second", 0.0),
        ("breaker_failures", 0),
        ("breaker_open_seconds", -1.0),
        ("sweep_seconds", 61.0),
    ],
)
def test_a_destination_setting_has_a_limit(field: str, value: object) -> None:
    """A value outside its rule is refused, and the message begins with a field's name."""
    arguments: dict[str, Any] = {"name": "billing", field: value}
    with pytest.raises(InvalidSetting) as caught:
        DestinationSettings(**arguments)
    assert caught.value.message.split(":")[0] in DestinationSettings.__slots__


@pytest.mark.req("CLM-11")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("drain_seconds", -1.0),
        ("give_back_seconds", 0.0),
        ("poll_seconds", ()),
        ("poll_seconds", (0.5, 0.05)),
        ("poll_seconds", (0.0,)),
        ("poll_seconds", (0.1,) * 9),
        ("recover_every_seconds", 0.0),
        ("recover_limit", 10_001),
        ("recover_delay_seconds", -0.1),
        ("statement_timeout_seconds", 0.0),
        ("lock_timeout_seconds", 0.0),
        ("idle_in_transaction_timeout_seconds", 0.0),
        ("expected_delivery_set_version", ""),
    ],
)
def test_a_dispatcher_setting_has_a_limit(field: str, value: object) -> None:
    """A value outside its rule is refused, and the message begins with the field's name."""
    arguments: dict[str, Any] = {field: value}
    with pytest.raises(InvalidSetting, match=f"^{field}: "):
        DispatcherSettings(**arguments)


@pytest.mark.req("F79")
def test_the_connections_of_a_dispatcher_are_known() -> None:
    """A dispatcher uses one connection per lane, one to renew and one to recover."""
    destinations = [DestinationSettings(name="billing", lanes=3), DestinationSettings(name="search")]
    assert pool_size(destinations) == 3 + 2 + 2
