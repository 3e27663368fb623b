"""The frozen agreement: which event must reach which destination, and which receipt proves it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DefinitionQuad:
    """The complete identity of a delivery set definition (SET-17); compared field by field.

    `digest` is 64 lower-case hexadecimal characters.
    """

    version: str
    schema_version: str
    digest_algorithm_version: str
    digest: str


@dataclass(frozen=True, slots=True)
class ProjectionTarget:
    """The exact projection whose receipt a member accepts (SET-09)."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Member:
    """One frozen line of a delivery set definition (STO-07, SET-18).

    `member_id` is the database's short name of the line; it means nothing outside that database.
    """

    member_id: int
    definition: DefinitionQuad
    event_type: str
    schema_version: str
    destination: str
    consumer_name: str
    mandatory: bool
    receipt_type: str
    receipt_schema_version: str
    projection: ProjectionTarget | None
