"""The one table of transitions: the page on states lists the same lines, and both models move by it."""

from __future__ import annotations

import re
from itertools import product

import pytest

from seapost.model.delivery import DeliveryStatus
from tests.kit.transitions import (
    LEASED,
    NOTHING,
    PROVEN,
    TABLE,
    TERMINAL,
    TRANSITIONS,
    Finish,
    Guard,
    Refusal,
    Transition,
    Verb,
)
from tests.kit.tree import ROOT

PAGE = ROOT / "docs" / "explanation" / "state-machine.md"
PICTURE = ROOT / "docs" / "assets" / "delivery-states.svg"
ATTEMPTS = ROOT / "docs" / "assets" / "attempt-states.svg"

SAID = {
    "the same four are equal": {Guard.HELD},
    "the same; receipt, event digest and member agree": {Guard.HELD, Guard.PROVEN},
    **{str(guard): {guard} for guard in Guard},
}
"""The conditions in the words of the page, which says "the same" where a row repeats the one above."""


def _rows(heading: str) -> list[list[str]]:
    """The rows of the table under a heading of the page, head and rule left out."""
    section = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def _words(cell: str) -> list[str]:
    return re.findall(r"[a-z_]+", cell)


@pytest.mark.req("STO-24", "STO-19")
def test_the_page_lists_exactly_these_transitions() -> None:
    """From, verb, condition and target of every row are those of the table, in its order, and there is no other row."""
    *rows, last = _rows("Delivery")
    found = [
        (source.strip("`"), verb, SAID[condition], target.strip("`")) for source, verb, condition, target, _ in rows
    ]
    assert found == [(line.source or "–", line.verb, line.guards, line.target) for line in TRANSITIONS]
    assert (set(_words(last[0])), last[1:3]) == (set(TERMINAL), ["anything", "never"])


@pytest.mark.req("STO-24")
def test_the_page_lists_who_writes_which_finish() -> None:
    """Every finish of the table has its row, with its verb and with the disposition that belongs to it."""
    dispositions = {
        Finish.ACKNOWLEDGED: "none",
        Finish.RETRYABLE: "scheduled",
        Finish.NON_RETRYABLE: "quarantined",
        Finish.EXPIRED: "reclaimable",
    }
    found = [tuple(cell.strip("`") for cell in row) for row in _rows("Attempt")]
    assert found == [(line.finish, dispositions[line.finish], line.verb) for line in TRANSITIONS if line.finish]


@pytest.mark.req("STO-24")
def test_the_pictures_show_the_same_words() -> None:
    """Every state and every verb has its label in the picture, and so has every finish."""
    labels = re.findall(r"<text[^>]*>([^<]*)", PICTURE.read_text(encoding="utf-8"))
    words = {_words(label)[0] for label in labels}
    assert words == {*(str(status) for status in DeliveryStatus), *(str(verb) for verb in Verb)}
    finishes = set(re.findall(r"<text[^>]*>([^<]*)", ATTEMPTS.read_text(encoding="utf-8")))
    assert finishes >= {str(finish) for finish in Finish}


@pytest.mark.req("STO-24", "STO-25", "NEG-10")
def test_nothing_leaves_a_terminal_state() -> None:
    """No verb moves an acknowledged or quarantined delivery, whatever is true of it."""
    for status, verb in product(TERMINAL, Verb):
        assert isinstance(TABLE.answer(status, verb, frozenset(Guard)), Refusal)


@pytest.mark.req("CLM-05", "CLM-09", "AMB-52", "NEG-43")
@pytest.mark.parametrize("verb", [Verb.RENEW, Verb.ACKNOWLEDGE, Verb.RETRY, Verb.QUARANTINE])
def test_a_fenced_verb_without_its_fence_is_stale(verb: Verb) -> None:
    """Every verb of a worker asks for the fence, of any delivery; only the copy without that guard gives way."""
    everything_else = frozenset(Guard) - {Guard.HELD}
    for status in DeliveryStatus:
        assert TABLE.answer(status, verb, everything_else) is Refusal.STALE
    assert isinstance(TABLE.without(verb, Guard.HELD).answer(LEASED, verb, everything_else), Transition)


@pytest.mark.req("AMB-52", "PUB-03")
def test_an_acknowledgement_without_proof_is_invalid() -> None:
    """The holder's word alone is not enough, and with nothing it is stale before it is invalid."""
    assert TABLE.answer(LEASED, Verb.ACKNOWLEDGE, PROVEN - {Guard.PROVEN}) is Refusal.INVALID
    assert TABLE.answer(LEASED, Verb.ACKNOWLEDGE, NOTHING) is Refusal.STALE
