"""Pages whose code is run as it stands: what to do with a block says the HTML comment before it.

| Comment | The block |
|---|---|
| `<!-- run -->` | python, sql or sh: is run, in the order of the page, python blocks in one namespace |
| `<!-- run async -->` | python with `await` at the top |
| `<!-- run until: TEXT -->` | sh: is repeated until its output holds the text |
| `<!-- run in background -->` | sh: is started and ended with the page |
| `<!-- file: NAME -->` | is saved under the name, in the page's own folder |

Comments are invisible in the rendered page. A block without one is only read, so say nothing there that could be run.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, LiteralString, Self, cast

import psycopg

from tests.kit.drivers.urls import url_of
from tests.kit.eventually import eventually
from tests.kit.serving import free_port

ROOT: Final = Path(__file__).resolve().parents[2]
PORTS_IN_TEXT: Final = ("8700", "8701")
COMMAND_SECONDS_MAX: Final = 90
STOP_SECONDS_MAX: Final = 45
REPEAT_SECONDS_MAX: Final = 90.0

_PORT: Final = re.compile(rf"\b(?:{'|'.join(PORTS_IN_TEXT)})\b")
_BLOCK: Final = re.compile(
    r"^(?P<indent> *)<!-- (?P<order>(?:run|file)[^>]*?) -->\n+"
    r"(?P=indent)```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """One block that is run or saved."""

    line: int
    order: str
    language: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page that carry an order, from top to bottom."""
    content = page.read_text(encoding="utf-8")
    found: list[Block] = []
    for match in _BLOCK.finditer(content):
        indent = len(match["indent"])
        text = "".join(line[indent:] for line in match["text"].splitlines(keepends=True))
        found.append(Block(content.count("\n", 0, match.start()) + 1, match["order"], match["language"], text))
    return found


def pages_with_code() -> Iterator[Path]:
    """Every page of ours that has something to run."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if blocks_of(page):
            yield page


@dataclass
class PageRun:
    """Runs the blocks of one page: python and SQL here, commands as processes in a folder of their own.

    Args:
        folder: where files are saved and commands run.
        dsn: the database that python blocks find as `DSN`, commands in the variable of that name, both as a URL,
            and that SQL blocks run in; None where a page brings its own.
    """

    page: Path
    folder: Path
    dsn: str | None = None
    names: dict[str, Any] = field(default_factory=dict[str, Any])
    _background: ExitStack = field(default_factory=ExitStack)
    _ports: dict[str, str] = field(default_factory=lambda: {port: str(free_port()) for port in PORTS_IN_TEXT})

    def __enter__(self) -> Self:
        self.names["DSN"] = None if self.dsn is None else url_of(self.dsn)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._background.__exit__(kind, error, trace)

    def run(self) -> None:
        """Run every block; a failure names page and line."""
        for block in blocks_of(self.page):
            try:
                self._run(block)
            except Exception as error:
                error.add_note(f"{self.page.relative_to(ROOT)}, line {block.line}")
                raise

    def _run(self, block: Block) -> None:
        text = self._with_free_ports(block.text)
        verb, _, rest = block.order.partition(" ")
        match verb.rstrip(":"), block.language:
            case "file", _:
                (self.folder / rest).write_text(text, encoding="utf-8")
            case "run", "python":
                self._python(block, text)
            case "run", "sql":
                assert self.dsn is not None, "this page has no database"
                with psycopg.connect(self.dsn, autocommit=True) as connection:
                    connection.execute(cast("LiteralString", text))
            case "run", "sh":
                self._command(text, rest)
            case _:
                raise AssertionError(f"cannot {block.order} a block of {block.language}")

    def _with_free_ports(self, text: str) -> str:
        return _PORT.sub(lambda match: self._ports[match[0]], text)

    def _python(self, block: Block, text: str) -> None:
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if block.order == "run async" else 0
        code = compile("\n" * block.line + text, str(self.page), "exec", flags=flags, dont_inherit=True)
        result = eval(code, self.names)  # noqa: S307 - code of our own pages
        if inspect.iscoroutine(result):
            asyncio.run(result)

    def _command(self, text: str, how: str) -> None:
        settings = self.folder / "seapost.toml"
        if settings.exists():  # `seapost init` wrote the port that the page speaks of
            settings.write_text(self._with_free_ports(settings.read_text(encoding="utf-8")), encoding="utf-8")
        if how == "in background":
            self._background.enter_context(_Process(self._start(text)))
            return
        wanted = how.removeprefix("until: ") if how.startswith("until: ") else None
        if wanted is None:
            code, output = self._finish(text)
            assert code == 0, f"{text.strip()} ended with code {code}:\n{output}"
            return
        seen: list[str] = [""]

        def appears() -> bool:
            seen[0] = self._finish(text)[1]
            return wanted in seen[0]

        try:
            eventually(appears, what=f"{wanted!r} in the output", deadline_seconds=REPEAT_SECONDS_MAX)
        except AssertionError as error:
            error.add_note(f"last output of {text.strip()}:\n{seen[0]}")
            raise

    def _finish(self, text: str) -> tuple[int, str]:
        with self._start(text) as process:
            output, _ = process.communicate(timeout=COMMAND_SECONDS_MAX)
            return process.returncode, output

    def _start(self, text: str) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SEAPOST_", "PG"))} | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONDONTWRITEBYTECODE": "1",
            **({} if self.dsn is None else {"DSN": url_of(self.dsn)}),
        }
        return subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self.folder,
            env=environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


class _Process:
    """A command in the background; ended as a person would, with the signal that lets it finish."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ended_early = self._process.poll() is not None
        if not ended_early:
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            output, _ = self._process.communicate(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            output, _ = self._process.communicate()
            ended_early = True
        if error is not None:
            error.add_note(f"output of {self._process.args!r}:\n{output}")
        else:
            assert not ended_early, f"{self._process.args!r} did not run to the end of the page:\n{output}"
