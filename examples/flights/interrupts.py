"""Ctrl-C and its kin, held back for the moments in which something has started and nobody can name it yet."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def held_back() -> Generator[None, None, None]:
    """Let the block come to its end before an interrupt is heard; works in the main thread, where signals arrive.

    Raises:
        KeyboardInterrupt: at the end of the block, when one came meanwhile.
    """
    caught: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        caught.append(number)

    before = {number: signal.getsignal(number) for number in ENDING}
    heard = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in heard:
        _ = signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in heard.items():
            _ = signal.signal(number, handler)
        if caught:
            raise KeyboardInterrupt(caught[0])
