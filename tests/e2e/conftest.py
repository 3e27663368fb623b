"""Wiring only: the shop that the tests of the command line work in."""

from __future__ import annotations

from tests.kit.shop import folder, new_shop, shop

__all__ = ["folder", "new_shop", "shop"]
