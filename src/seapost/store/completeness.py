"""Proofs of completeness (`functions/completeness/`); every call belongs into one REPEATABLE READ transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from psycopg.types.json import Jsonb

from seapost.store.calls import call

if TYPE_CHECKING:
    from collections.abc import Mapping

    import psycopg

    from seapost.model.delivery_set import ProjectionTarget

_PROVE: Final = "select seapost.completeness_prove_v1(%b, %b, %t, %b)"
_QUERY: Final = "select seapost.completeness_query_v1(%b, %b, %t)"
_WATCH: Final = "select seapost.completeness_watch_v1(%b, %b)"


def prove(
    connection: psycopg.Connection[Any], *, target: ProjectionTarget, semantic: Mapping[str, str], rehash: bool
) -> bytes:
    """Prove how complete a version is and keep the manifest; return its canonical bytes (ORD-05, SEC-19).

    Raises:
        WrongIsolation: the transaction is not REPEATABLE READ.
    """
    [(manifest,)] = call(connection, _PROVE, (target.name, target.version, Jsonb(dict(semantic)), rehash))
    return manifest


def query(
    connection: psycopg.Connection[Any], *, target: ProjectionTarget, semantic: Mapping[str, str] | None
) -> dict[str, Any]:
    """Compare the version with its last proof (ORD-11 to ORD-14); reads only."""
    given = None if semantic is None else Jsonb(dict(semantic))
    [(answer,)] = call(connection, _QUERY, (target.name, target.version, given))
    return answer


def watch(connection: psycopg.Connection[Any], *, target: ProjectionTarget) -> int:
    """Keep the sums of the view's tables from now on; return how many were not watched before."""
    [(number,)] = call(connection, _WATCH, (target.name, target.version))
    return number
