"""`seapost backpressure`: an operator limits a queue, a producer feels it, a look shows the gate."""

from __future__ import annotations

import pytest

from seapost.cli.exit_codes import ExitCode
from seapost.model.errors import BackPressure
from tests.kit.shop import Shop


def test_a_limit_is_set_felt_shown_and_taken_away(shop: Shop) -> None:
    """The producer's append raises `BackPressure`; `show` lists the limit; off lets appends in again."""
    assert shop.done("backpressure", "show") == {"limits": []}
    said = shop.done("backpressure", "set", "billing", "2", "--actor", "ada")
    assert said == {"destination": "billing", "watermark": 2, "action": "refuse", "waitSeconds": 0}
    shop.append("order-1", "order-2")
    with pytest.raises(BackPressure, match=r"destination billing has 2 deliveries waiting, and its watermark is 2"):
        shop.append("order-3")
    (limit,) = shop.done("backpressure", "show")["limits"]
    assert (limit["destination"], limit["watermark"], limit["action"]) == ("billing", 2, "refuse")
    assert shop.run("backpressure", "show").code == ExitCode.DONE
    shop.done("backpressure", "set", "billing", "2", "--action", "off", "--actor", "ada")
    assert len(shop.append("order-3", "order-4")) == 2


def test_what_makes_no_sense_is_refused(shop: Shop) -> None:
    """A wait without slow, and a destination that no delivery set names."""
    wait = shop.run("backpressure", "set", "billing", "2", "--wait", "5")
    assert wait.code == ExitCode.USAGE
    assert shop.run("backpressure", "set", "nowhere", "2").code == ExitCode.FAILED
    slow = shop.done("backpressure", "set", "billing", "2", "--action", "slow")
    assert slow["waitSeconds"] == 5
