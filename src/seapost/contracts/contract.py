"""The base of every contract: closed, frozen, strict, and written in one way only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic.alias_generators import to_camel

from seapost.contracts import strictness
from seapost.contracts.canonical import canonicalise, encode
from seapost.contracts.examination import JSONValue, escape, printable
from seapost.model.errors import ContractError

if TYPE_CHECKING:
    from pydantic_core import CoreSchema, ErrorDetails

_RULES = {
    "extra_forbidden": "unknown_field",
    "missing": "missing_field",
    "literal_error": "not_in_enumeration",
    "union_tag_invalid": "unknown_branch",
    "union_tag_not_found": "missing_field",
    "string_pattern_mismatch": "pattern",
    "string_too_short": "length",
    "string_too_long": "length",
    "too_long": "length",
    "greater_than_equal": "range",
    "less_than_equal": "range",
}

if TYPE_CHECKING:
    _Base = BaseModel
else:

    class _Translating(type(BaseModel)):
        """Turns a refused construction into a `ContractError`, so that users see one kind of error."""

        def __call__(cls, *arguments: Any, **fields: Any) -> object:
            try:
                return super().__call__(*arguments, **fields)
            except ValidationError as error:
                raise refusal(error, fields) from None

    class _Base(BaseModel, metaclass=_Translating):
        pass


class StrictModel(_Base):
    """A closed structure; see `strictness` for what it refuses."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_by_name=True,
        validate_by_alias=True,
        ser_json_inf_nan="constants",
        hide_input_in_errors=True,
    )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[BaseModel], handler: GetCoreSchemaHandler, /) -> CoreSchema:
        return strictness.tighten(handler(source))

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if cls.__pydantic_complete__:
            cls.ensure_strict()

    @classmethod
    def ensure_strict(cls) -> None:
        """Finish the class and raise `TypeError` when it holds a structure that is not strict."""
        _ = cls.model_rebuild()
        for name in strictness.foreign_structures(cls.__pydantic_core_schema__, StrictModel):
            message = f"{cls.__name__} holds {name}; derive nested structures from EventPart or Contract"
            raise TypeError(message)

    @classmethod
    def decode(cls, document: bytes | str | dict[str, JSONValue]) -> Self:
        """Read JSON text, or a JSON object already read, by wire names only.

        The verdict depends on the canonical value alone, never on its spelling: `1.0` is an integer.

        Raises:
            CanonicalError, LimitExceeded: the document has no canonical form.
            ContractError: it breaks this contract, with the pointer and rule of the first problem.
        """
        return cls._decode_value(*_read(document))

    @classmethod
    def _decode_value(cls, value: JSONValue, text: bytes) -> Self:
        """Read a value together with its canonical text."""
        try:
            return cls.__pydantic_validator__.validate_json(text, by_alias=True, by_name=False)
        except ValidationError as error:
            raise refusal(error, value) from None

    def to_json(self) -> dict[str, JSONValue]:
        """The document by wire names; absent optional fields are left out, never null (REF-02)."""
        return self.model_dump(mode="json", by_alias=True)

    def canonical(self) -> bytes:
        """The RFC 8785 bytes of the document."""
        return encode(self.to_json())


class Contract(StrictModel):
    """A published document of Seapost: snake_case in Python, camelCase on the wire."""

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel)


def refusal(error: ValidationError, document: object) -> ContractError:
    """The first problem pydantic found, as an error that names the field and the rule.

    Input values are never repeated: a payload may hold what a log must not.
    """
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    first = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    pointer = printable(_pointer(first, document))
    kind = first["type"]
    rule = _RULES.get(kind, "wrong_type" if kind.endswith(("_type", "_parsing")) else kind)
    return ContractError(f"{error.title}: {first['msg']}{more}", pointer=pointer, rule=rule)


def _read(document: bytes | str | dict[str, JSONValue]) -> tuple[JSONValue, bytes]:
    """The document's value and canonical bytes."""
    if isinstance(document, (bytes, str)):
        return canonicalise(document)
    return document, encode(document)


def _pointer(problem: ErrorDetails, document: object) -> str:
    """The place of a problem; pydantic also lists union branches on the way, which the document lacks."""
    pointer, here = "", document
    parts = problem["loc"]
    for position, part in enumerate(parts):
        is_last = position == len(parts) - 1
        if isinstance(here, dict) and (part in here or (is_last and problem["type"] == "missing")):
            here = here.get(part)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        elif isinstance(here, (list, tuple)) and isinstance(part, int):
            here = here[part] if part < len(here) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        else:
            continue
        pointer = f"{pointer}/{escape(part)}"
    return pointer
