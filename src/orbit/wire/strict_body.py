"""From the bytes of a request to its model, its exact texts and its fingerprint (API-04, SRC-19, SRC-20, IDM-10).

The body is taken apart once, into the exact text of each member. `result` and `input` stay text. The other members are
small: they are decoded one by one and checked by the model. Why a body was refused in detail is found out only after
that has failed.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Generic, Never, TypeVar, cast

from pydantic import ValidationError

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.model.exact_json import depth, raw_members
from orbit.model.limits import JSON_DEPTH_MAX, RESULT_BYTES_MAX
from orbit.wire.bodies import RAW_MEMBERS, RequestBody
from orbit.wire.problems import ERRORS_MAX

BodyT_co = TypeVar("BodyT_co", bound=RequestBody, covariant=True)
_INTEGER_DIGITS_MAX: Final = 4300
_POINTER_LENGTH_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Given(Generic[BodyT_co]):
    """A request body that was read.

    Attributes:
        body: the checked members.
        fingerprint: SHA-256 in lower-case hexadecimal digits of what was sent, before defaults (IDM-10).
    """

    body: BodyT_co
    fingerprint: str


def read_request(model: type[BodyT_co], data: bytes) -> Given[BodyT_co]:
    """Read a request body.

    Raises:
        OrbitError: MALFORMED_REQUEST is no UTF-8, no JSON or nested too deeply; RESULT_TOO_LARGE a result or an input
            beyond 1 MiB; VALIDATION_FAILED everything else, with `errors`.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise OrbitError(ErrorCode.MALFORMED_REQUEST, "The body is not valid UTF-8.") from None
    try:
        members = raw_members(text)
    except (ValueError, RecursionError):
        _refuse(text)
    errors = [_unknown(name) for name in members if name not in model.model_fields][:ERRORS_MAX]
    values: dict[str, Any] = {}
    marks: dict[str, Any] = {}
    for name in model.model_fields.keys() & members.keys():
        member = members[name]
        if name in RAW_MEMBERS:
            marks[name] = _sha256(_exact(name, member).encode())
            values[name] = member
        elif member != "null":
            marks[name] = values[name] = _decoded(member)
    try:
        body = model.model_validate(values)
    except ValidationError as error:
        raise invalid(errors + _errors(error)) from None
    if errors:
        raise invalid(errors)
    return Given(body, _sha256(json.dumps(marks, sort_keys=True, separators=(",", ":")).encode()))


def invalid(errors: list[dict[str, str]], detail: str = "The request breaks its schema.") -> OrbitError:
    """VALIDATION_FAILED with what is wrong, member by member."""
    return OrbitError(ErrorCode.VALIDATION_FAILED, detail, errors=errors[:ERRORS_MAX])


def invalid_member(pointer: str, message: str) -> OrbitError:
    """VALIDATION_FAILED for one member, header or query parameter."""
    return invalid([{"pointer": pointer, "message": message}])


def _exact(name: str, member: str) -> str:
    if len(member.encode()) > RESULT_BYTES_MAX:
        raise OrbitError(ErrorCode.RESULT_TOO_LARGE, f"{name} has more than {RESULT_BYTES_MAX} bytes.")
    if depth(member) > JSON_DEPTH_MAX:
        raise OrbitError(ErrorCode.MALFORMED_REQUEST, f"{name} is nested deeper than {JSON_DEPTH_MAX} levels.")
    return member


def _decoded(member: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    try:
        return json.loads(member, parse_int=_integer)
    except RecursionError:
        raise OrbitError(ErrorCode.MALFORMED_REQUEST, "The body is nested too deeply.") from None


def _integer(digits: str) -> int | Decimal:
    """An integer longer than Python converts is out of every range here; as a Decimal it fails the type."""
    return int(digits) if len(digits) <= _INTEGER_DIGITS_MAX else Decimal(digits)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _unknown(name: str) -> dict[str, str]:
    return {"pointer": _pointer((name,)), "message": "there is no such member"}


def _errors(error: ValidationError) -> list[dict[str, str]]:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [{"pointer": _pointer(one["loc"]), "message": one["msg"]} for one in found]


def _pointer(location: tuple[int | str, ...]) -> str:
    parts = (str(part).encode("utf-8", "replace").decode() for part in location)
    pointer = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)
    return pointer[:_POINTER_LENGTH_MAX]


def _refuse(text: str) -> Never:
    """Find out why a text is not what `raw_members` takes apart, and raise it."""
    malformed = OrbitError(ErrorCode.MALFORMED_REQUEST, "The body is not one JSON value.")
    if depth(text) > JSON_DEPTH_MAX + 2:
        raise OrbitError(ErrorCode.MALFORMED_REQUEST, "The body is nested too deeply.")
    pairs: list[list[tuple[str, object]]] = []

    def keep(found: list[tuple[str, object]]) -> None:
        pairs[:] = [found]  # the outermost object ends last

    try:
        value = cast(
            "object",
            json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_number, object_pairs_hook=keep),
        )
    except (ValueError, RecursionError):
        raise malformed from None
    if value is not None or not pairs:
        raise invalid_member("", "a JSON object is expected")
    doubled = [name for name, times in Counter(name for name, _ in pairs[0]).items() if times > 1]
    if not doubled:
        raise malformed
    raise invalid([{"pointer": _pointer((name,)), "message": "the member stands twice"} for name in doubled])


def _no_number(token: str) -> Never:
    raise ValueError(token)
