"""The base of OceanWay's contracts: the kernel's, but completed when it is first used.

There are some three hundred classes, and each process needs few of them: building all validators at import would cost
every process more than its whole start may. Completion is serialized, so that two threads never complete one class at
the same time. A test completes every class and runs the kernel's check of strictness on it.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import ConfigDict

from seapost.contracts import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMPLETING: Final = RLock()


class Contract(contract.Contract):
    """A published document or a part of one: closed, frozen, strict, snake_case in Python, camelCase on the wire."""

    model_config: ClassVar[ConfigDict] = ConfigDict(defer_build=True)

    @classmethod
    def model_rebuild(
        cls,
        *,
        force: bool = False,
        raise_errors: bool = True,
        _parent_namespace_depth: int = 2,
        _types_namespace: Mapping[str, Any] | None = None,
    ) -> bool | None:
        """Complete the class; see pydantic."""
        with _COMPLETING:
            return super().model_rebuild(
                force=force,
                raise_errors=raise_errors,
                _parent_namespace_depth=_parent_namespace_depth + 1,
                _types_namespace=_types_namespace,
            )
