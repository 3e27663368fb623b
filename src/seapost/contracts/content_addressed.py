"""Objects that carry the digest of their own content, so that two databases can agree on one (SET-12, RCP-02).

The *quad* of such an object is its reference, schema version, digest algorithm version and digest. The
*candidate* is the exact part of the object that the digest covers. A reference that a repository assigns
is never covered, because it is only known after the content; neither is the time of the commit.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from seapost.contracts.canonical import canonicalise, check_canonical, encode
from seapost.contracts.contract import Contract
from seapost.contracts.digest import ALGORITHM, sha256_hex
from seapost.model.errors import ContractError, DigestMismatch, UnknownContract

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seapost.contracts.examination import JSONValue

_NO_DIGEST = "0" * 64


@dataclass(frozen=True, slots=True)
class Quad:
    """The complete identity of a content-addressed object; always compared as a whole."""

    ref: str
    schema_version: str
    digest_algorithm_version: str
    digest: str


@dataclass(frozen=True, slots=True)
class _Addressing:
    """The wire names a class uses for its quad, and those its digest leaves out.

    `python` maps every wire name of the class to its Python name.
    """

    prefix: str
    ref: str
    schema_version: str
    algorithm: str
    digest: str
    outside: frozenset[str]
    python: Mapping[str, str]

    @classmethod
    def of(cls, prefix: str, ref: str | None, outside: Iterable[str], python: Mapping[str, str]) -> _Addressing:
        digest = f"{prefix}Digest"
        left_out = {digest, *outside}
        if ref is None:  # a reference that a repository assigns
            ref = f"{prefix}Ref"
            left_out.add(ref)
        return cls(
            prefix=prefix,
            ref=ref,
            schema_version=f"{prefix}SchemaVersion",
            algorithm=f"{prefix}DigestAlgorithmVersion",
            digest=digest,
            outside=frozenset(left_out),
            python=python,
        )


class ContentAddressed(Contract):
    """A contract with a quad.

    Class keywords:
        prefix: first part of the quad's four wire names, such as `consumerReceipt`.
        schema_version: the one schema version this class reads.
        outside: further wire names that the digest leaves out.
        ref: wire name that takes the place of `<prefix>Ref` and *is* covered by the digest.
    """

    addressing: ClassVar[_Addressing]
    schema_version: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep the class keywords away from `object`, which knows none."""
        for keyword in ("prefix", "schema_version", "outside", "ref"):
            kwargs.pop(keyword, None)
        super().__init_subclass__(**kwargs)

    @classmethod
    def __pydantic_init_subclass__(
        cls,
        *,
        prefix: str | None = None,
        schema_version: str = "1",
        outside: Iterable[str] = (),
        ref: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if prefix is None:
            return
        python = {field.alias or name: name for name, field in cls.model_fields.items()}
        addressing = _Addressing.of(prefix, ref, outside, python)
        quad = {addressing.ref, addressing.schema_version, addressing.algorithm}
        missing = (addressing.outside | quad) - python.keys()
        if missing:
            message = f"{cls.__name__} lacks the fields {', '.join(sorted(missing))}"
            raise TypeError(message)
        cls.addressing = addressing
        cls.schema_version = schema_version

    @classmethod
    def decode_with_candidate(cls, document: bytes | str) -> tuple[Self, bytes]:
        """Read an object as `decode` does, and return it with the canonical bytes that its digest covers."""
        value, text = canonicalise(document)
        return cls._decode_both(value, text)

    @classmethod
    def _decode_value(cls, value: JSONValue, text: bytes) -> Self:
        return cls._decode_both(value, text)[0]

    @classmethod
    def _decode_both(cls, value: JSONValue, text: bytes) -> tuple[Self, bytes]:
        """Read a value, then require its digest to be the digest of its candidate."""
        members = value if isinstance(value, dict) else {}
        cls._refuse_unknown(members)
        decoded = super()._decode_value(value, text)
        candidate = encode(cls._covered(members))
        cls._compare(str(members[cls.addressing.digest]), candidate)
        return decoded, candidate

    @classmethod
    def assemble(cls, **fields: object) -> Self:
        """Build an object from its Python field names, without schema version, algorithm and digest.

        Raises:
            ContractError: a field breaks the contract.
        """
        addressing = cls.addressing
        names = addressing.python
        draft = cls(
            **fields,
            **{
                names[addressing.schema_version]: cls.schema_version,
                names[addressing.algorithm]: ALGORITHM,
                names[addressing.digest]: _NO_DIGEST,
            },
        )
        return draft.model_copy(update={names[addressing.digest]: draft.digest()})

    @classmethod
    def from_candidate(cls, candidate: bytes, **outside: JSONValue) -> Self:
        """Put an object together again from its stored candidate and the fields the digest leaves out.

        `outside` holds those fields by Python name, without the digest, which is computed.

        Raises:
            CanonicalError: the candidate is not canonical.
            ContractError: a field is missing, unknown or on the wrong side.
        """
        value = check_canonical(candidate)
        if not isinstance(value, dict):
            message = "A candidate is a JSON object"
            raise ContractError(message, rule="wrong_type")
        names = {python: wire for wire, python in cls.addressing.python.items()}
        added = {names.get(name, name): item for name, item in outside.items()}
        added[cls.addressing.digest] = sha256_hex(candidate)
        misplaced = (value.keys() & cls.addressing.outside) | (added.keys() - cls.addressing.outside)
        if misplaced:
            message = f"{cls.__name__}: the field is on the wrong side of the digest"
            raise ContractError(message, pointer=f"/{min(misplaced)}", rule="candidate")
        document = {**value, **added}
        return cls._decode_value(document, encode(document))

    def candidate(self) -> dict[str, JSONValue]:
        """The part of the document that the digest covers."""
        return self._covered(self.to_json())

    def candidate_bytes(self) -> bytes:
        """The canonical bytes that the digest covers."""
        return encode(self.candidate())

    def digest(self) -> str:
        """The digest computed from the content, whatever the digest field says."""
        return sha256_hex(self.candidate_bytes())

    def verify(self) -> None:
        """Raise `DigestMismatch` unless the digest field is the digest of the content."""
        self._compare(self.quad().digest, self.candidate_bytes())

    def quad(self) -> Quad:
        """Reference, schema version, algorithm and digest as the object states them."""
        addressing = self.addressing
        names = addressing.python
        return Quad(
            ref=getattr(self, names[addressing.ref]),
            schema_version=getattr(self, names[addressing.schema_version]),
            digest_algorithm_version=getattr(self, names[addressing.algorithm]),
            digest=getattr(self, names[addressing.digest]),
        )

    @classmethod
    def _compare(cls, stated: str, candidate: bytes) -> None:
        if not hmac.compare_digest(stated, sha256_hex(candidate)):
            message = f"{cls.__name__}: the digest does not belong to the content"
            raise DigestMismatch(message, pointer=f"/{cls.addressing.digest}", rule="digest")

    @classmethod
    def _covered(cls, value: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
        outside = cls.addressing.outside
        return {name: item for name, item in value.items() if name not in outside}

    @classmethod
    def _refuse_unknown(cls, value: Mapping[str, JSONValue]) -> None:
        """Name an unknown schema or algorithm as such, before its fields are judged by this schema."""
        addressing = cls.addressing
        for name, known, what in (
            (addressing.schema_version, cls.schema_version, "schema"),
            (addressing.algorithm, ALGORITHM, "algorithm"),
        ):
            stated = value.get(name)
            if isinstance(stated, str) and stated != known:
                message = f"{cls.__name__}: this release reads only version {known} here"
                raise UnknownContract(message, pointer=f"/{name}", rule=f"unknown_{what}")
