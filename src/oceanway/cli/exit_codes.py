"""The exit codes of every command of `oceanway`: 0 only when everything that was asked is done (F85)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    """What a command ended with; a released number keeps its meaning, which is that of the kernel's program."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    SETTING = 3
    UNREACHABLE = 4
    SCHEMA = 5
    NOT_FOUND = 6
    CHECK_FAILED = 7
    NOT_DRAINED = 9
    OUTPUT_LOST = 10
    RELEASE = 11
    INTERRUPTED = 130


MEANINGS: Final[dict[ExitCode, str]] = {
    ExitCode.DONE: "Everything that was asked is done.",
    ExitCode.FAILED: "The command was refused or failed; nothing is half done.",
    ExitCode.USAGE: "The command line cannot be read: unknown option, missing or malformed argument.",
    ExitCode.SETTING: "A setting is missing or breaks its rule.",
    ExitCode.UNREACHABLE: "A database cannot be reached or did not answer in time. Trying again may help.",
    ExitCode.SCHEMA: "A database has no schema, another schema or another history than this release needs.",
    ExitCode.NOT_FOUND: "What was named does not exist.",
    ExitCode.CHECK_FAILED: "The command ran, and what it checked is wrong.",
    ExitCode.NOT_DRAINED: "The worker was stopped before it could give everything back; leases lapse by themselves.",
    ExitCode.OUTPUT_LOST: "The work may be done, but its result could not be written to standard output.",
    ExitCode.RELEASE: "The active definition of the database is not this release's; `oceanway init` activates it.",
    ExitCode.INTERRUPTED: "Interrupted from the keyboard. The command can be run again.",
}
