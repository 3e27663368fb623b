"""What the server really does in a call: the plans of every statement inside its functions, and what they touch.

`auto_explain` shows the plans as they ran, nested ones too, and sends them to the session as notices; the server's own
counters say how many index entries were read, dead ones included.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from psycopg.errors import Diagnostic

from tests.kit.kernel import Kernel

SETTINGS: Final = {
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_format": "json",
    "auto_explain.log_level": "notice",
}
READ: Final = (
    "select coalesce(sum(pg_stat_get_xact_tuples_returned(x.indexrelid)), 0)"
    " + pg_stat_get_xact_tuples_returned(%s::regclass)"
    " from pg_index as x where x.indrelid = %s::regclass"
)

ResultT = TypeVar("ResultT")
Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ran:
    """One call.

    Attributes:
        indexes: names of the indexes that any of its statements scanned.
        sequential: tables that any of them read from end to end.
        pages: pages touched in shared buffers, in all.
        read: index entries and rows read of the table in question, dead ones included.
    """

    indexes: frozenset[str]
    sequential: frozenset[str]
    pages: int
    read: int


class Watched:
    """A session of a superuser whose calls can be watched."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._plans: list[Node] = []
        kernel.connection.add_notice_handler(self._note)
        kernel.run("load 'auto_explain'")

    def run(self, table: str, call: Callable[[Kernel], ResultT]) -> tuple[Ran, ResultT]:
        """Watch one call of a function; `table` is the one whose reads are counted."""
        name = f"seapost.{table}"
        with self.kernel.connection.transaction():
            before = self.kernel.value(READ, name, name)
            self._set(on=True)
            self._plans.clear()
            result = call(self.kernel)
            self.kernel.value("select 1")  # a statement is explained when it is closed, which the next one does
            plans = list(self._plans)
            self._set(on=False)
            read = self.kernel.value(READ, name, name) - before
        nodes = [node for plan in plans for node in _nodes(plan)]
        indexes = {node["Index Name"] for node in nodes if "Index Name" in node and _ran(node)}
        sequential = {node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan" and _ran(node)}
        pages = max((plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] for plan in plans), default=0)
        return Ran(frozenset(indexes), frozenset(sequential), pages, read), result

    def _set(self, *, on: bool) -> None:
        for name, value in SETTINGS.items():
            shown = value if on or name != "auto_explain.log_min_duration" else "-1"
            self.kernel.value("select set_config(%s, %s, false)", name, shown)

    def _note(self, diagnostic: Diagnostic) -> None:
        _, found, text = (diagnostic.message_primary or "").partition("plan:\n")
        if found:
            self._plans.append(json.loads(text)["Plan"])


def _nodes(plan: Node) -> Iterator[Node]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _ran(node: Node) -> bool:
    return node.get("Actual Loops", 0) > 0
