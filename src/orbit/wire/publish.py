"""Writes the published documents of `orbit.events.v1`: `python -m orbit.wire.publish [docs]`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from orbit.wire.asyncapi import asyncapi_text, reference_page
from orbit.wire.schema import frame_schema_text

DOCUMENTS: Final[Mapping[str, Callable[[], str]]] = {
    "schemas/orbit.events.v1.schema.json": frame_schema_text,
    "schemas/orbit.events.v1.asyncapi.json": asyncapi_text,
    "reference/orbit-events-v1.md": reference_page,
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
