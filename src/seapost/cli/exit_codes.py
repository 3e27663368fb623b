"""The exit codes of every command: 0 only when everything that was asked is done (F85)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    """What a command ended with; a released number keeps its meaning."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    SETTING = 3
    UNREACHABLE = 4
    SCHEMA = 5
    NOT_FOUND = 6
    CHECK_FAILED = 7
    PARTIAL = 8
    NOT_DRAINED = 9
    OUTPUT_LOST = 10
    INTERRUPTED = 130


MEANINGS: Final[dict[ExitCode, str]] = {
    ExitCode.DONE: "Everything that was asked is done. A reader that closes the pipe early is no failure.",
    ExitCode.FAILED: "The command was refused or failed; nothing is half done. From `doctor`: the schema has drifted.",
    ExitCode.USAGE: "The command line cannot be read: unknown option, missing or malformed argument.",
    ExitCode.SETTING: "A setting is missing or breaks its rule, or the application cannot be loaded.",
    ExitCode.UNREACHABLE: "The database cannot be reached or did not answer in time. Trying again may help.",
    ExitCode.SCHEMA: "The database has no schema, another schema or another history than this release needs.",
    ExitCode.NOT_FOUND: "What was named does not exist in this database.",
    ExitCode.CHECK_FAILED: "The command ran, and what it checked is wrong: defects, differences, an invalid receipt.",
    ExitCode.PARTIAL: "Some of what was asked is done, some is not; the output says which.",
    ExitCode.NOT_DRAINED: "The worker was stopped before it could give everything back; leases lapse by themselves.",
    ExitCode.OUTPUT_LOST: "The work may be done, but its result could not be written to standard output.",
    ExitCode.INTERRUPTED: "Interrupted from the keyboard. The command can be run again.",
}
