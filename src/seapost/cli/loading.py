"""Finds what a command works on in the user's own code: `module:attribute`, and says exactly what it found."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from seapost.inbox.inbox import Inbox
from seapost.model.errors import InvalidSetting
from seapost.outbox.application import Application
from seapost.projections.projection import Projection


@dataclass(frozen=True, slots=True)
class Loaded:
    """What stands behind `module:attribute`.

    Attributes:
        application: the routes, when it is an application.
        inboxes: the consumers, when it is one or several.
    """

    name: str
    application: Application | None = None
    inboxes: tuple[Inbox, ...] = ()


def load(name: str) -> Loaded:
    """Import `module:attribute`; the current folder is searched first, as Python itself would.

    Raises:
        InvalidSetting: the name has another form, the module cannot be imported, or it holds something else there.
    """
    found = _attribute(name)
    if isinstance(found, Application):
        return Loaded(name, application=found)
    if isinstance(found, Inbox):
        return Loaded(name, inboxes=(found,))
    if isinstance(found, list | tuple):
        return Loaded(name, inboxes=_inboxes(name, cast("list[object]", found)))
    raise InvalidSetting(f"{name} is {_kind(found)}, not an Application, an Inbox or a list of inboxes.")


def load_application(name: str) -> Application:
    """The application behind `module:attribute`; anything else is refused."""
    loaded = load(name)
    if loaded.application is None:
        raise InvalidSetting(f"{name} holds inboxes, not an Application; routes are declared by an Application.")
    return loaded.application


def load_inboxes(name: str) -> tuple[Inbox, ...]:
    """The inboxes behind `module:attribute`; anything else is refused."""
    loaded = load(name)
    if not loaded.inboxes:
        raise InvalidSetting(f"{name} is an Application, not an Inbox; events are received by an Inbox.")
    return loaded.inboxes


def load_projection(name: str) -> Projection:
    """The projection behind `module:attribute`; anything else is refused."""
    found = _attribute(name)
    if not isinstance(found, Projection):
        raise InvalidSetting(f"{name} is {_kind(found)}, not a Projection.")
    return found


def _inboxes(name: str, items: Iterable[object]) -> tuple[Inbox, ...]:
    inboxes: list[Inbox] = []
    for position, item in enumerate(items):
        if not isinstance(item, Inbox):
            raise InvalidSetting(f"{name}[{position}] is {_kind(item)}, not an Inbox.")
        inboxes.append(item)
    if not inboxes:
        raise InvalidSetting(f"{name} is an empty list; it needs at least one Inbox.")
    return tuple(inboxes)


def _attribute(name: str) -> Any:  # noqa: ANN401 - whatever the user's module holds there
    """What stands behind `module:attribute`."""
    module_name, colon, attribute = name.partition(":")
    if not (colon and module_name and attribute):
        raise InvalidSetting(f"{name!r} is no module:attribute; write for instance shop.events:application.")
    found: Any = _import(module_name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InvalidSetting(f"{name}: {_called(found)} has no attribute {part!r}.")
        found = getattr(found, part)
    return found


def _import(module_name: str) -> ModuleType:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise InvalidSetting(f"There is no module {error.name!r} in {folder} or on Python's path.") from None
        raise InvalidSetting(f"{module_name} cannot be imported: {error}{_place(error)}.") from None
    except (Exception, SystemExit) as error:
        raise InvalidSetting(
            f"{module_name} cannot be imported: {type(error).__name__}: {error}{_place(error)}."
        ) from error


def _place(error: BaseException) -> str:
    """Where in the user's code it went wrong; import machinery is of no interest."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<")
        and Path(frame.filename).parent.name != "importlib"
        and frame.filename != __file__
    ]
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def _kind(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _called(value: object) -> str:
    return f"module {value.__name__}" if isinstance(value, ModuleType) else _kind(value)
