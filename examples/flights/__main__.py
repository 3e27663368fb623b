"""`python -m examples.flights`, which `make demo` runs: the report, then the evidence as the last line."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Final, NoReturn

import psycopg
from rich.console import Console

from examples.flights.data import DataMissing
from examples.flights.run import run
from examples.flights.settings import DemoSettings, InvalidChoice
from examples.flights.supervisor import DemoFailed
from seapost.model.errors import SeapostError

EXIT_BROKEN: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130
WIDTH_WITHOUT_TERMINAL: Final = 110


def main() -> int:
    """Return 0 when every promise was kept, 1 when not, 2 when something was asked for that cannot be."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # started with nohup, it stays when the terminal goes
            _ = signal.signal(number, _leave)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDTH_WITHOUT_TERMINAL)
    try:
        outcome = run(DemoSettings.from_environment(), console)
    except (InvalidChoice, DataMissing) as error:
        print(f"demo: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (DemoFailed, SeapostError, psycopg.Error) as error:
        print(f"demo: {error}", file=sys.stderr)
        return EXIT_BROKEN
    except KeyboardInterrupt:
        print("demo: interrupted; everything it started has been ended", file=sys.stderr)
        return EXIT_INTERRUPTED
    print(outcome.evidence.line(), flush=True)
    return 0 if outcome.evidence.holds else EXIT_BROKEN


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    """End as Ctrl-C would: the way out ends the processes and removes the data."""
    raise KeyboardInterrupt(number)


if __name__ == "__main__":
    sys.exit(main())
