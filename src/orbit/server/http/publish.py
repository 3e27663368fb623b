"""Writes the published document of the HTTP interface: `python -m orbit.server.http.publish [docs]`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from orbit.server.http.openapi import published_text
from orbit.server.http.reference import reference_page

DOCUMENTS: Final[Mapping[str, Callable[[], str]]] = {
    "schemas/orbit.openapi.json": published_text,
    "reference/orbit-http.md": reference_page,
}
"""Path below `docs` → its text."""


def publish(docs: Path) -> None:
    """Write every document below `docs`."""
    for name, text in DOCUMENTS.items():
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    publish(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
