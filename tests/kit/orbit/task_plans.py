"""Plans of every statement inside the functions that a session calls, as they really ran (GEN-11, T-R25).

`auto_explain` sends them to the session as notices. `Plans` looks only at our own tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from psycopg import Connection
from psycopg.errors import Diagnostic

SETTINGS: Final = {
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_format": "json",
    "auto_explain.log_level": "notice",
    "client_min_messages": "notice",
}
Node = dict[str, Any]
ResultT = TypeVar("ResultT")


class Plans:
    """The plans of one superuser's session, with generic plans only."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self._seen: list[Node] = []
        connection.add_notice_handler(self._note)
        connection.execute("load 'auto_explain'")
        connection.execute("set plan_cache_mode = force_generic_plan")

    def of(self, call: Callable[[], ResultT]) -> tuple[list[Node], ResultT]:
        """The nodes that ran in a call of a function, and what it returned."""
        for name, value in SETTINGS.items():
            self._connection.execute("select set_config(%s, %s, false)", (name, value))
        self._seen.clear()
        result = call()
        self._connection.execute("select 1")
        plans = list(self._seen)
        self._connection.execute("set auto_explain.log_min_duration = -1")
        return [node for plan in plans for node in _nodes(plan) if node.get("Actual Loops", 0) > 0], result

    def _note(self, diagnostic: Diagnostic) -> None:
        _, found, text = (diagnostic.message_primary or "").partition("plan:\n")
        if found:
            self._seen.append(json.loads(text)["Plan"])


def _nodes(plan: Node) -> Iterator[Node]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def faults(nodes: list[Node], rows_removed_max: int = 100) -> list[str]:
    """What T-R25 forbids: a sequential scan, a sort, more than so many rows removed by a filter."""
    found: list[str] = []
    for node in nodes:
        kind, table = node["Node Type"], node.get("Relation Name", "")
        if kind == "Seq Scan":
            found.append(f"sequential scan of {table}")
        removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        if removed > rows_removed_max:
            found.append(f"{removed} rows of {table} removed by a filter")
        if kind in {"Sort", "Incremental Sort"} and node["Actual Rows"] > rows_removed_max:
            found.append(f"sort of {node['Actual Rows']} rows")
    return found
