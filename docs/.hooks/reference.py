"""Writes the reference pages from the code they describe: commands, settings, errors, metrics, SQL functions.

MkDocs calls `on_pre_build`; `python docs/.hooks/reference.py` does the same without it. The pages are committed, so
that they can be read where the code is read, and a test says when they are not current.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final

from typer.main import get_command

from oceanway.cli import exit_codes as oceanway_exit_codes
from oceanway.cli import main as oceanway_main
from orbit.cli import exit_codes as orbit_exit_codes
from orbit.cli import main as orbit_main
from seapost.cli.exit_codes import MEANINGS
from seapost.cli.failures import failure_of
from seapost.cli.layers import MANY, SettingField
from seapost.cli.main import app
from seapost.cli.settings import known_fields
from seapost.model import errors
from seapost.model.errors import SeapostError
from seapost.model.outcome import NON_RETRYABLE_CODES, RETRYABLE_CODES, UNCOUNTED_CODES, ErrorCode
from seapost.server.problems import TITLES
from seapost.telemetry import catalog
from seapost.telemetry.catalog import LogEvent, Metric

Parsed = Any
"""Commands and parameters as typer's parser, whose classes are private, holds them."""

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = ROOT / "docs" / "reference"
SQL: Final = ROOT / "src" / "seapost" / "sql"
NOTICE: Final = "<!-- Written by docs/.hooks/reference.py from the code; do not edit. -->"

SECTION_TITLES: Final = {
    "database": "The database with the outbox.",
    "consumer": "The consumer's own database: its receipts, and the effects beside them.",
    "dispatcher": "What all destinations of a dispatcher share.",
    "workload": "Who the dispatcher is to the consumers that it calls.",
    "receiver": "The endpoint of `seapost serve`; a limit that is left out is the receiver's own.",
    "monitor": "Health and metrics of `seapost dispatch`.",
    "display": "What operators are shown.",
    "log": "What is written to standard error.",
    "destinations": "One section for each destination; `NAME` is its name in the delivery set.",
}


def pages() -> dict[str, str]:
    """The pages by file name."""
    writers: dict[str, Callable[[], Iterator[str]]] = {
        "cli.md": _cli,
        "oceanway-cli.md": _oceanway_cli,
        "orbit-cli.md": _orbit_cli,
        "settings.md": _settings,
        "errors.md": _errors,
        "metrics.md": _metrics,
        "sql-functions.md": _sql_functions,
    }
    return {name: "\n".join([NOTICE, "", *writer()]).rstrip() + "\n" for name, writer in writers.items()}


def on_pre_build(**_: object) -> None:
    """Write what changed, before MkDocs looks for pages; what did not is left alone, or `serve` would never rest."""
    for name, text in pages().items():
        path = PAGES / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            _ = path.write_text(text, encoding="utf-8")


# Commands -----------------------------------------------------------------------------------------------


def _cli() -> Iterator[str]:
    root: Parsed = get_command(app)
    yield "# Commands"
    yield ""
    yield root.help
    yield ""
    yield (
        "Every command takes `--help` and `--json`: then one JSON document goes to standard output and nothing else; "
        "logs, progress and errors go to standard error. Settings come from flags, then `SEAPOST_…` variables, then a "
        "TOML file; see [settings](settings.md). No command shows a secret."
    )
    yield from _program("seapost", root, MEANINGS)


def _oceanway_cli() -> Iterator[str]:
    root: Parsed = get_command(oceanway_main.app)
    yield "# Commands of OceanWay"
    yield ""
    yield root.help
    yield ""
    yield (
        "Every command takes `--help` and `--json`: then one JSON document goes to standard output and nothing else; "
        "logs, progress and errors go to standard error. Settings come from `OCEANWAY_…` variables, then a TOML file. "
        "No command shows a secret; a grant goes to a new file for its owner alone."
    )
    yield from _program("oceanway", root, oceanway_exit_codes.MEANINGS)


def _orbit_cli() -> Iterator[str]:
    root: Parsed = get_command(orbit_main.app)
    yield "# Commands of Orbit"
    yield ""
    yield root.help
    yield ""
    yield (
        "Every command takes `--help` and `--json`: then one JSON document goes to standard output and nothing else; "
        "logs, progress and errors go to standard error. The database comes from `--dsn`, else from "
        "`ORBIT_DATABASE_URL`. A token is shown once, by the command that makes it; nothing else shows a secret."
    )
    yield from _program("orbit", root, orbit_exit_codes.MEANINGS)


def _program(name: str, root: Parsed, meanings: Mapping[Any, str]) -> Iterator[str]:
    """Every command of a program, then its exit codes."""
    for path, command in _commands(root, ()):
        yield from _command((name, *path), command)
    yield ""
    yield "## Exit codes"
    yield ""
    yield from _table(
        ("Code", "Name", "Meaning"), [(str(int(code)), code.name.lower(), text) for code, text in meanings.items()]
    )


def _commands(group: Parsed, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Parsed]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


def _command(path: tuple[str, ...], command: Parsed) -> Iterator[str]:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    line = " ".join([*path, "[OPTIONS]", *(_argument(parameter) for parameter in arguments)])
    yield ""
    yield f"## {' '.join(path)}"
    yield ""
    yield f"```text\n{line}\n```"
    yield ""
    for paragraph in inspect.cleandoc(command.help).split("\n\n"):
        yield " ".join(paragraph.split())
        yield ""
    rows = [(f"`{_argument(parameter)}`", _plain(parameter.help)) for parameter in arguments]
    rows += [(_option(parameter), _described(parameter)) for parameter in options if parameter.name != "help"]
    yield from _table(("Argument or option", "Meaning"), rows)


def _argument(parameter: Parsed) -> str:
    name = parameter.metavar or parameter.name.upper()
    return name if parameter.required or name.startswith("[") else f"[{name}]"


def _option(parameter: Parsed) -> str:
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    kind = parameter.type_descriptor.annotation
    if parameter.is_flag:
        return f"`{names}`"
    if parameter.metavar:
        value = parameter.metavar
    elif isinstance(kind, type) and issubclass(kind, Enum):
        value = "|".join(str(one.value) for one in kind)
    else:
        value = {"int": "NUMBER", "float": "NUMBER"}.get(getattr(kind, "__name__", ""), "TEXT")
    return f"`{names} {value}`"


def _described(parameter: Parsed) -> str:
    text = _plain(parameter.help)
    default = parameter.default
    if default is None or default is False or parameter.is_flag:
        return text
    shown = default.value if isinstance(default, Enum) else f"{default:g}" if isinstance(default, float) else default
    return f"{text} Default: `{shown}`."


def _plain(text: str | None) -> str:
    return (text or "").replace("\\[", "[")


# Settings -----------------------------------------------------------------------------------------------


def _settings() -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield (
        "A setting comes from a flag of the command, else from its environment variable, else from the TOML file that "
        "`--config` or `SEAPOST_CONFIG` names (`seapost.toml` by default). All of them are validated once, at start; a "
        "mistake is told with the name of the setting, its rule and where it stands, never with its value. "
        "Durations are seconds. "
        "In variables, lists have commas between their values; `<NAME>` is a destination in upper case, with `_` for "
        "every other character. Paths in the file start at its own folder."
    )
    sections: dict[str, list[SettingField]] = {}
    for field in known_fields():
        sections.setdefault(field.place[0], []).append(field)
    for section, fields in sections.items():
        yield ""
        yield f"## [{section}.NAME]" if MANY in fields[0].place else f"## [{section}]"
        yield ""
        yield SECTION_TITLES[section]
        yield ""
        yield from _table(("Setting", "Type", "Default", "Meaning", "Variable"), [_setting(field) for field in fields])


def _setting(field: SettingField) -> tuple[str, ...]:
    default = "" if field.default is None else f"`{field.default or ' '}`"
    meaning = field.description[:1].upper() + field.description[1:]
    meaning = meaning.replace("None is", "left out, it is").replace("None:", "left out:")
    if meaning and not meaning.endswith("."):
        meaning += "."
    return (f"`{field.place[-1]}`", field.kind, default, meaning, f"`{field.variable}`")


# Errors -------------------------------------------------------------------------------------------------


def _errors() -> Iterator[str]:
    yield "# Errors"
    yield ""
    yield (
        "Every error that Seapost raises on purpose is a `seapost.model.errors.SeapostError`. Those with a SQLSTATE "
        "are also what the database functions raise, for any client; the message and detail are the function's own. "
        "The exit code is that of a command that ends with the error."
    )
    yield ""
    rows = [
        (
            f"`{error.__name__}`",
            f"`{error.sqlstate}`" if error.sqlstate else "",
            str(int(failure_of(_instance(error)).code)),
            _summary(error),
        )
        for error in _error_classes()
    ]
    yield from _table(("Error", "SQLSTATE", "Exit code", "Meaning"), rows)
    yield ""
    yield "## Error codes of deliveries"
    yield ""
    yield (
        "What a finished attempt, a result over HTTP, a quarantine and a label may say: a closed list. Retryable "
        "codes lead to another attempt, non-retryable ones to quarantine. A code that does not count never exhausts "
        "`max_attempts`."
    )
    yield ""
    rows = [
        (
            f"`{code}`",
            "retryable" if code in RETRYABLE_CODES else "non-retryable" if code in NON_RETRYABLE_CODES else "set here",
            "" if code not in RETRYABLE_CODES else "no" if code in UNCOUNTED_CODES else "yes",
        )
        for code in ErrorCode
    ]
    yield from _table(("Code", "Kind", "Counts"), rows)
    yield ""
    yield "## Problems of the receiver"
    yield ""
    yield "Problem details (RFC 9457) of `seapost serve`; the type is `urn:seapost:problem:` and the name."
    yield ""
    yield from _table(("Name", "Title"), [(f"`{name}`", title) for name, title in TITLES.items()])


def _error_classes() -> list[type[SeapostError]]:
    """Every error of the kernel's own module, in the order in which it is written."""
    return [
        member
        for member in vars(errors).values()
        if isinstance(member, type) and issubclass(member, SeapostError) and member is not SeapostError
    ]


def _instance(error: type[SeapostError]) -> SeapostError:
    return error(_summary(error))


def _summary(error: type[SeapostError]) -> str:
    return (error.__doc__ or "").strip().splitlines()[0]


# Metrics and logs -----------------------------------------------------------------------------------------


def _metrics() -> Iterator[str]:
    yield "# Metrics and log events"
    yield ""
    yield (
        "`/metrics` of `seapost dispatch --monitor-port` and of `seapost serve` speaks the Prometheus text format. No "
        "label carries an identity: no tenant, user, event, trace or attempt (MET-06). Names are public API: one "
        "that was released keeps its meaning."
    )
    yield ""
    found = [value for value in vars(catalog).values() if isinstance(value, Metric)]
    rows = [
        (f"`{one.name}`", str(one.kind), ", ".join(f"`{label}`" for label in one.labels), one.help) for one in found
    ]
    yield from _table(("Metric", "Kind", "Labels", "Meaning"), rows)
    yield ""
    yield "## Log events"
    yield ""
    yield (
        "Logs are JSON, one object per line on standard error; `event` is one of these. Records hold no payload, no "
        "token and no message of a foreign exception; identifiers stand in fields of their own (MET-07)."
    )
    yield ""
    yield from (f"- `{event}`" for event in LogEvent)


# SQL ------------------------------------------------------------------------------------------------------


_SIGNATURE: Final = re.compile(
    r"^create or replace function (?P<name>seapost\.\w+)\s*\((?P<arguments>.*?)\)\s*\n?returns (?P<returns>.+?)\n"
    r"(?=language|set |as |immutable|stable|strict|security|parallel)",
    re.MULTILINE | re.DOTALL,
)


def _sql_functions() -> Iterator[str]:
    yield "# SQL functions and views"
    yield ""
    yield (
        "The functions are the interface: any client in any language that may execute them has the same rights as "
        "Seapost itself. A released `_vN` keeps its signature and meaning. Errors are SQLSTATEs of class `SP`; "
        "see [errors](errors.md). Functions without a version are internal to the schema and not listed."
    )
    for path in sorted((SQL / "functions").rglob("*_v*.sql")):
        text = path.read_text(encoding="utf-8")
        match = _SIGNATURE.search(text)
        if match is None:
            raise ValueError(f"{path.name} has no signature that this page can read")
        yield ""
        yield f"## {match['name'].removeprefix('seapost.')}"
        yield ""
        arguments = " ".join(match["arguments"].split())
        returns = " ".join(match["returns"].split()).replace("( ", "(").replace(" )", ")")
        yield f"```sql\n{match['name']}({arguments})\nreturns {returns}\n```"
        yield ""
        yield from _header(text)
    yield ""
    yield "## Views"
    for path in sorted((SQL / "views").glob("*.sql")):
        yield ""
        yield f"### seapost.{path.stem}"
        yield ""
        yield from _header(path.read_text(encoding="utf-8"))


def _header(text: str) -> Iterator[str]:
    """The opening comment of a file: a paragraph, then one for each of its keywords."""
    comment: list[str] = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        comment.append(line.removeprefix("--").strip())
    parts = re.split(r" (?=(?:Locks|Errors): )", " ".join(comment))
    for part in parts:
        keyword, colon, rest = part.partition(": ")
        if colon and keyword in {"Purpose", "Locks", "Errors"}:
            sentence = rest[:1].upper() + rest[1:]
            yield sentence if keyword == "Purpose" else f"**{keyword}:** {rest}"
        else:
            yield part
        yield ""


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(_cell(text) for text in row) + " |"


def _cell(text: str) -> str:
    """Table text: no bar ends the cell, and what looks like a tag is only shown; code spans show it by themselves."""
    escaped = text.replace("|", "\\|")
    return escaped if "`" in text else escaped.replace("<", "&lt;")


if __name__ == "__main__":
    on_pre_build()
