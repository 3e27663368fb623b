"""Switches the fixtures of `seapost.testing` on for the shop's tests."""

from __future__ import annotations

import pytest

import seapost
from examples.shop.contracts import application

pytest_plugins = ["seapost.testing.plugin"]


@pytest.fixture
def seapost_application() -> seapost.Application:
    """Give the routes that every test database gets."""
    return application
