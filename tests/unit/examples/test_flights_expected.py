"""What the demo expects of the flights, worked out on lines that can be added up by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from examples.flights.data import Selection, read_rows
from examples.flights.expected import compute, sum_up
from examples.flights.producer import read_flight
from examples.flights.tables import NO_TAILNUM, Mileage, Punctuality

COLUMNS = 19


def line(carrier: str, tailnum: str, *, departed: str = "517", delay: str = "0", miles: str = "100") -> list[str]:
    """One line of the file with the columns that matter."""
    columns = ["NA"] * COLUMNS
    columns[1], columns[3], columns[8], columns[9], columns[11], columns[15] = (
        "1",
        departed,
        delay,
        carrier,
        tailnum,
        miles,
    )
    return columns


def test_the_sums_of_a_few_flights() -> None:
    """Fifteen minutes late is on time and sixteen is not; a diverted flight flew; a cancelled one did not."""
    expected = sum_up(
        [
            line("UA", "N1", delay="15"),
            line("UA", "N1", delay="16"),
            line("UA", "N2", delay="NA"),
            line("UA", "N2", departed="NA", delay="NA"),
            line("AA", "N3", delay="-20", miles="7"),
        ]
    )
    assert (expected.completed, expected.cancelled) == (4, 1)
    assert expected.tables.punctuality == {"AA": Punctuality(1, 1, -20, 0), "UA": Punctuality(3, 1, 31, 1)}
    assert expected.tables.mileage == {"N1": Mileage(2, 200), "N2": Mileage(1, 100), "N3": Mileage(1, 7)}
    assert expected.deliveries == 4 * 2 + 1


def test_flights_without_a_tail_number_share_a_row() -> None:
    """An aircraft that nobody wrote down has a row of its own, unless its flight was cancelled."""
    expected = sum_up([line("UA", "NA"), line("AA", "", miles="5"), line("AA", "NA", departed="NA", delay="NA")])
    assert expected.tables.mileage == {NO_TAILNUM: Mileage(2, 105)}


def test_january_is_the_month_that_the_demo_promises() -> None:
    """January has 27,004 flights, of which 521 were cancelled."""
    expected = compute(Selection.parse("january"))
    assert (expected.events, expected.cancelled) == (27_004, 521)


def test_every_flight_has_a_key_of_its_own() -> None:
    """No two flights of a month share the key under which their events are told."""
    flights = [read_flight(number, row) for number, row in enumerate(read_rows(Selection.parse("january")), 1)]
    assert len({flight.key for flight in flights}) == len(flights) == 27_004


@pytest.mark.parametrize("text", ["", "0", "-1", "336777", "year", "1.5", "\uff11"])
def test_a_selection_that_means_nothing_is_refused(text: str) -> None:
    """What is no selection is refused with the choices there are."""
    with pytest.raises(ValueError, match="january, all, or a number"):
        Selection.parse(text)


@pytest.mark.parametrize("text", ["january", "all", "1500"])
def test_a_selection_reads_what_it_writes(text: str) -> None:
    """The producer's process gets the selection as text and reads the same one."""
    assert str(Selection.parse(text)) == text


def test_rows_stop_at_the_number_asked_for() -> None:
    """A number takes so many lines from the start of the file."""
    rows: Sequence[dict[str, str]] = list(read_rows(Selection.parse("3")))
    assert [row["tailnum"] for row in rows] == ["N14228", "N24211", "N619AA"]
