"""The exit codes of every command of `orbit`: 0 only when everything that was asked is done (F85, MIG-08, MIG-20)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    """What a command ended with; a released number keeps its meaning."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    ACTIVE_WRITERS = 3
    DIRTY = 4
    HISTORY = 5
    NOT_FOUND = 6
    CHECK_FAILED = 7
    SETTING = 8
    UNREACHABLE = 9
    OUTPUT_LOST = 10
    INTERRUPTED = 130


MEANINGS: Final[dict[ExitCode, str]] = {
    ExitCode.DONE: "Everything that was asked is done. A reader that closes the pipe early is no failure.",
    ExitCode.FAILED: "The command was refused or failed; nothing is half done.",
    ExitCode.USAGE: "The command line cannot be read: unknown option, missing or malformed argument.",
    ExitCode.ACTIVE_WRITERS: "`migrate up` found connections of `orbit serve`; stop the write nodes first.",
    ExitCode.DIRTY: "A migration stopped half-way; look at the database, then `orbit migrate resolve`.",
    ExitCode.HISTORY: "A migration file was changed, a version is missing, or the database is newer or not migrated.",
    ExitCode.NOT_FOUND: "What was named does not exist in this database.",
    ExitCode.CHECK_FAILED: "The command ran, and what it checked is wrong.",
    ExitCode.SETTING: "A setting is missing or breaks its rule.",
    ExitCode.UNREACHABLE: "The database cannot be reached or did not answer in time. Trying again may help.",
    ExitCode.OUTPUT_LOST: "The work may be done, but its result could not be written to standard output.",
    ExitCode.INTERRUPTED: "Interrupted from the keyboard. The command can be run again.",
}
