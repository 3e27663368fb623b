"""The code of the documentation, run as it stands: a page that lies fails here."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.kit.database import TestDatabase, open_directory
from tests.kit.documents import ROOT, PageRun, pages_with_code
from tests.kit.kernel import Kernel

ORDERS: Final = "create table public.orders (id text primary key, total numeric not null)"

DOCUMENTS: Final = ROOT / "docs"
TUTORIALS: Final = sorted(page for page in pages_with_code() if page.is_relative_to(DOCUMENTS / "tutorials"))
PAGES: Final = sorted(page for page in pages_with_code() if page.is_relative_to(DOCUMENTS) and page not in TUTORIALS)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give an empty folder that the embedded server's own user can enter."""
    directory = open_directory()
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def _name(page: Path) -> str:
    return str(page.relative_to(DOCUMENTS).with_suffix(""))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_page_runs_against_a_producers_database(page: Path, folder: Path, database: TestDatabase) -> None:
    """Every marked block of the page runs, in order, in a database that routes `order.placed@1` to billing."""
    connection = database.connect(autocommit=True)
    Kernel(connection).route()
    connection.execute(ORDERS)
    with PageRun(page, folder, database.dsn) as run:
        run.run()
    database.assert_places()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", TUTORIALS, ids=_name)
def test_a_tutorial_runs_from_nothing(page: Path, folder: Path) -> None:
    """A reader with an empty folder who types what the tutorial says gets where it says."""
    with PageRun(page, folder) as run:
        run.run()
