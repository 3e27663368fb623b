"""Planners that choose badly, and the pages that a call touches: what a hot function must not depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from tests.kit.kernel import Kernel

SCANS = ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan", "enable_tidscan")
JOINS = ("enable_nestloop", "enable_hashjoin", "enable_mergejoin")
REST = ("enable_material", "enable_memoize", "enable_sort", "enable_incremental_sort", "enable_hashagg")

PLANNERS: dict[str, dict[str, str]] = {
    "as usual": {},
    **{name: {name: "off"} for name in (*SCANS, *JOINS, *REST)},
    "no scan but sequential": dict.fromkeys(SCANS, "off"),
    "hash joins only": {"enable_nestloop": "off", "enable_mergejoin": "off"},
    "merge joins only": {"enable_nestloop": "off", "enable_hashjoin": "off"},
    "no helper": dict.fromkeys(REST, "off"),
    "generic plans": {"plan_cache_mode": "force_generic_plan"},
    "custom plans": {"plan_cache_mode": "force_custom_plan"},
    "costs upside down": {"seq_page_cost": "100", "random_page_cost": "0.01", "cpu_tuple_cost": "10"},
    "compiled": {"jit": "on", "jit_above_cost": "0", "jit_inline_above_cost": "-1", "jit_optimize_above_cost": "-1"},
}


def use_planner(kernel: Kernel, settings: dict[str, str]) -> None:
    """Set planner options for the session."""
    # Up to PostgreSQL 17 an option that is off costs 10^10, which would compile every query of a test that avoids one.
    for name, value in ({"jit": "off"} | settings).items():
        kernel.value("select set_config(%s, %s, false)", name, value)


def pages_of(kernel: Kernel, call: Callable[[Kernel], Any]) -> tuple[int, Any]:
    """The pages that a call touches in shared buffers, as the session's own statistics count them, and its result."""
    cursor = psycopg.ClientCursor(kernel.connection)
    spied = _Explaining(kernel, cursor)
    result = call(spied)
    return spied.pages, result


class _Explaining(Kernel):
    """Runs each query under EXPLAIN (ANALYZE, BUFFERS), in a transaction that commits, and adds up its pages."""

    def __init__(self, kernel: Kernel, cursor: psycopg.ClientCursor[Any]) -> None:
        super().__init__(kernel.connection)
        self._cursor = cursor
        self.pages = 0

    def rows(self, query: LiteralString, *arguments: object) -> list[tuple[Any, ...]]:
        """No row: what the query returned is lost, what it did is done."""
        text = sql.SQL("explain (analyze, buffers, timing off, format json) ") + sql.SQL(query)
        plan = self._cursor.execute(text, arguments).fetchall()[0][0][0]["Plan"]
        self.pages += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        return []
