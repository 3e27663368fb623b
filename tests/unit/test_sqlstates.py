"""The registry of SQLSTATEs agrees with the error tree and maps what the server raises."""

from __future__ import annotations

from typing import ClassVar

import psycopg
import pytest

from seapost.database import sqlstates
from seapost.model import errors
from seapost.model.errors import SeapostError


def test_every_code_is_of_class_sp_and_belongs_to_one_error() -> None:
    """Each error with a SQLSTATE stands in the registry once, under five characters of class SP."""
    named = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, SeapostError) and value.__dict__.get("sqlstate")
    ]
    assert sorted(error.sqlstate or "" for error in named) == list(sqlstates.REGISTRY)
    assert all(len(code) == 5 and code.startswith("SP") for code in sqlstates.REGISTRY)
    assert set(sqlstates.REGISTRY.values()) == set(named)


def test_two_errors_with_one_code_are_refused() -> None:
    """The registry cannot be built when two errors claim the same SQLSTATE."""

    class Base(SeapostError):
        """A tree of its own."""

    class One(Base):  # pyright: ignore[reportUnusedClass]
        """First claim."""

        sqlstate: ClassVar[str | None] = "SP991"

    class Two(Base):  # pyright: ignore[reportUnusedClass]
        """Second claim."""

        sqlstate: ClassVar[str | None] = "SP991"

    with pytest.raises(ValueError, match="share the SQLSTATE SP991"):
        sqlstates.build_registry(Base)


@pytest.mark.parametrize("code", ["SP1", "XX001", "SP-01"])
def test_a_code_outside_the_class_is_refused(code: str) -> None:
    """A SQLSTATE that is not five characters of class SP cannot enter the registry."""

    class Base(SeapostError):
        """A tree of its own."""

    type("Wrong", (Base,), {"sqlstate": code, "__doc__": "A wrong code."})
    with pytest.raises(ValueError, match="not a SQLSTATE of class SP"):
        sqlstates.build_registry(Base)


def test_foreign_errors_pass_untouched() -> None:
    """An error that is no database error of ours leaves `translated` as it entered."""
    error = psycopg.errors.UniqueViolation("duplicate")
    with pytest.raises(psycopg.errors.UniqueViolation) as caught, sqlstates.translated():
        raise error
    assert caught.value is error
    with pytest.raises(KeyError), sqlstates.translated():
        raise KeyError
