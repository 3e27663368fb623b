"""Where settings come from: flags, then the environment, then a TOML file; the first that names a setting wins.

Each value keeps its source, so that a refusal says where the mistake stands. Values themselves are never quoted: one
of them may be a secret.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, cast, get_type_hints

from pydantic import BaseModel

from seapost.model.errors import InvalidSetting

PREFIX: Final = "SEAPOST_"
MANY: Final = "*"
"""Stands for the name of one of many, as in `destinations.*.url`."""

Place = tuple[str, ...]


class Shape(Enum):
    """How a setting is written where everything is text."""

    ONE = "one value"
    LIST = "values with commas between them"
    PATH = "a path, relative to the file that names it"
    PATHS = "such paths with commas between them"


@dataclass(frozen=True, slots=True)
class SettingField:
    """One setting: what a flag, a variable or a line of the file can name.

    Attributes:
        place: section and field; `destinations.*.url` is `("destinations", "*", "url")`.
        kind: the type as a person reads it.
        default: the default as a person reads it; None where there is none.
    """

    place: Place
    shape: Shape
    kind: str
    default: str | None
    description: str

    @property
    def variable(self) -> str:
        """The environment variable; `<NAME>` stands for the name of one of many."""
        return PREFIX + "_".join("<NAME>" if part == MANY else _shouted(part) for part in self.place)


@dataclass(frozen=True, slots=True)
class Given:
    """A value somebody gave, and where."""

    value: object
    source: str


Layer = dict[Place, Given]


def fields_of(section: Place, model: type[Any]) -> Iterator[SettingField]:
    """The settings that a pydantic model or a dataclass holds, described by the class itself."""
    hints = get_type_hints(model)
    if issubclass(model, BaseModel):
        for name, field in model.model_fields.items():
            default = None if field.is_required() else _shown(field.get_default(call_default_factory=True))
            yield _field((*section, name), hints[name], default, field.description or "")
        return
    descriptions = attribute_descriptions(model)
    for field in dataclasses.fields(model):
        if section[-1] == MANY and field.name == "name":
            continue  # the name of the table says it
        default = None if field.default is dataclasses.MISSING else _shown(field.default)
        yield _field((*section, field.name), hints[field.name], default, descriptions.get(field.name, ""))


def attribute_descriptions(model: type[Any]) -> dict[str, str]:
    """The sentences under `Attributes:` in a docstring, by name; one sentence may describe several names."""
    _, _, block = (model.__doc__ or "").partition("Attributes:")
    found: dict[str, str] = {}
    for match in re.finditer(r"^ {8}(?P<names>\w+(?:, \w+)*): (?P<text>.*(?:\n {12,}.*)*)", block, re.MULTILINE):
        text = " ".join(match["text"].split())
        found.update(dict.fromkeys(match["names"].split(", "), text))
    return found


def _field(place: Place, hint: object, default: str | None, description: str) -> SettingField:
    text = str(hint) if not isinstance(hint, type) else hint.__name__
    if "list[" in text or "tuple[" in text:
        shape = Shape.PATHS if "Path" in text else Shape.LIST
    elif "Path" in text:
        shape = Shape.PATH
    else:
        shape = Shape.ONE
    return SettingField(place, shape, _kind(text, shape), default, description)


def _kind(text: str, shape: Shape) -> str:
    inner = text.removeprefix("list[").removeprefix("tuple[").removesuffix("]").removesuffix(", ...")
    if inner.startswith("typing.Literal["):
        return "one of " + inner.removeprefix("typing.Literal[").replace("'", "")
    names = [part.strip().rpartition(".")[2] for part in inner.split("|") if part.strip() != "None"]
    words = {"SecretStr": "secret text", "str": "text", "int": "integer", "float": "number", "bool": "true or false"}
    kind = " or ".join(words.get(name, name.lower()) for name in names)
    return f"list of {kind}" if shape in {Shape.LIST, Shape.PATHS} else kind


def _shown(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(str, cast("Sequence[object]", value))) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _shouted(part: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", part.upper())


# The three layers ---------------------------------------------------------------------------------------


def file_layer(path: Path, known: Sequence[SettingField]) -> Layer:
    """Everything a TOML file says.

    Raises:
        InvalidSetting: the file cannot be read, is no TOML, or holds something that no setting is called.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"{path} is no TOML file: {error}.") from None
    shapes = {field.place: field.shape for field in known}
    folder = path.absolute().parent
    layer: Layer = {}
    for place, value in _leaves(document, known):
        shape = shapes.get(_pattern(place))
        if shape is None:
            raise _unknown(place, known, str(path))
        layer[place] = Given(_under(folder, value, shape), str(path))
    return layer


def _leaves(document: Mapping[str, object], known: Sequence[SettingField]) -> Iterator[tuple[Place, object]]:
    """The values of the file by place; how deep a table goes is decided by what may stand in it."""
    depths = {field.place[0]: len(field.place) for field in known}

    def walk(node: Mapping[str, object], place: Place, depth: int) -> Iterator[tuple[Place, object]]:
        for name, value in node.items():
            here = (*place, name)
            if isinstance(value, dict) and len(here) < depth:
                yield from walk(cast("dict[str, object]", value), here, depth)
            else:
                yield here, value

    for name, value in document.items():
        if isinstance(value, dict) and name in depths:
            yield from walk(cast("dict[str, object]", value), (name,), depths[name])
        else:
            yield (name,), value


def _under(folder: Path, value: object, shape: Shape) -> object:
    """Paths of a file start at its own folder; what is no path is left to validation."""
    if shape is Shape.PATH and isinstance(value, str):
        return folder / value
    if shape is Shape.PATHS and isinstance(value, list):
        items = cast("list[object]", value)
        return [folder / item if isinstance(item, str) else item for item in items]
    return value


def _pattern(place: Place) -> Place:
    return (place[0], MANY, *place[2:]) if len(place) == 3 else place  # noqa: PLR2004 - section, name, field


def environment_layer(environment: Mapping[str, str], known: Sequence[SettingField], names: Sequence[str]) -> Layer:
    """Every variable that names a setting; `names` are those of one of many, such as the destinations of the file.

    Variables of other programs that start alike are left alone, but one that starts like a section and names nothing
    in it is a mistake.

    Raises:
        InvalidSetting: such a variable.
    """
    expected: dict[str, tuple[Place, Shape]] = {}
    for field in known:
        for name in names if MANY in field.place else ("",):
            variable = field.variable.replace("<NAME>", _shouted(name))
            expected[variable] = (tuple(name if part == MANY else part for part in field.place), field.shape)
    sections = tuple(sorted({f"{PREFIX}{_shouted(field.place[0])}_" for field in known}))
    layer: Layer = {}
    for variable, text in environment.items():
        if variable in expected:
            place, shape = expected[variable]
            layer[place] = Given(_read(text, shape), variable)
        elif variable.startswith(sections):
            close = difflib.get_close_matches(variable, expected, n=1)
            raise InvalidSetting(
                f"{variable}: no setting has this name{f'; did you mean {close[0]}?' if close else '.'}"
            )
    return layer


def _read(text: str, shape: Shape) -> object:
    match shape:
        case Shape.LIST:
            return [part.strip() for part in text.split(",") if part.strip()]
        case Shape.PATH:
            return Path(text).absolute()
        case Shape.PATHS:
            return [Path(part.strip()).absolute() for part in text.split(",") if part.strip()]
        case Shape.ONE:
            return text


def _unknown(place: Place, known: Sequence[SettingField], source: str) -> InvalidSetting:
    dotted = ".".join(place)
    candidates = [".".join(_named(field.place, place)) for field in known]
    close = difflib.get_close_matches(dotted, candidates, n=1)
    return InvalidSetting(
        f"{dotted}: no setting has this name{f'; did you mean {close[0]}?' if close else ''} ({source})"
    )


def _named(pattern: Place, place: Place) -> Place:
    name = place[1] if len(place) > 1 else MANY
    return tuple(name if part == MANY else part for part in pattern)


def merged(*layers: Layer) -> Layer:
    """The layers as one; the first that names a setting wins."""
    result: Layer = {}
    for layer in reversed(layers):
        result.update(layer)
    return result
