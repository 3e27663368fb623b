"""`module:attribute`: what may stand there, and what is said when something else does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seapost.cli.loading import load, load_application, load_inboxes
from seapost.model.errors import InvalidSetting

MODULE = """\
from seapost.inbox.inbox import Inbox
from seapost.outbox.application import Application

application = Application("shop")
inbox = Inbox("billing")
inboxes = [inbox, Inbox("search")]
mixed = [inbox, 7]
empty = []


class Place:
    inbox = inbox
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give the name of a user's module in the current folder."""
    name = f"users_code_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield name
    sys.modules.pop(name, None)


def test_an_application_and_inboxes_are_found(module: str) -> None:
    """An Application, one Inbox, a list of them and an attribute of an attribute are all welcome."""
    assert load_application(f"{module}:application").name == "shop"
    assert [inbox.name for inbox in load_inboxes(f"{module}:inbox")] == ["billing"]
    assert [inbox.name for inbox in load_inboxes(f"{module}:inboxes")] == ["billing", "search"]
    assert [inbox.name for inbox in load(f"{module}:Place.inbox").inboxes] == ["billing"]


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        ("missing", "has no attribute 'missing'"),
        ("mixed", "[1] is an int, not an Inbox"),
        ("empty", "empty list"),
        ("Inbox", "the class Inbox"),
        ("Place.inbox.name", "is a str, not an Application"),
    ],
)
def test_what_was_found_instead_is_said(module: str, attribute: str, words: str) -> None:
    """The message names the attribute and what stands there."""
    with pytest.raises(InvalidSetting) as caught:
        load(f"{module}:{attribute}")
    assert words in str(caught.value)


def test_the_other_kind_is_refused(module: str) -> None:
    """Routes need an Application, receiving needs an Inbox, and each message says so."""
    with pytest.raises(InvalidSetting, match="holds inboxes"):
        load_application(f"{module}:inbox")
    with pytest.raises(InvalidSetting, match="is an Application"):
        load_inboxes(f"{module}:application")


@pytest.mark.parametrize("name", ["shop", ":x", "shop:", ""])
def test_another_form_is_refused(name: str) -> None:
    """Without a module and an attribute there is nothing to load."""
    with pytest.raises(InvalidSetting, match="module:attribute"):
        load(name)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import absolutely_missing", "absolutely_missing"),
        ("x = 1\nraise ValueError('at import')", "ValueError: at import"),
        ("def broken(:\n", "SyntaxError"),
        ("raise SystemExit(0)", "SystemExit"),
    ],
)
def test_a_module_that_fails_is_told_with_its_place(
    code: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's own mistake is told as one line with the reason, and with the file where one is to blame."""
    name = f"broken_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(InvalidSetting) as caught:
        load(f"{name}:x")
    assert words in str(caught.value)
    assert name in str(caught.value)


def test_a_missing_module_is_told_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that is not there is not confused with one that fails."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(InvalidSetting, match="no module 'nowhere'"):
        load("nowhere.at_all:x")
