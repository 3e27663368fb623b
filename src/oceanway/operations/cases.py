"""The cases of one finalization fence, decided from everything known about it (CASE-07 to CASE-14, AMB-13).

What is known is a set: the requests and the resolutions of generations 1, 2, 3 … A generation is ended by its
resolution. Generations end in order, so the resolutions known without a gap from the first generation on say how far
the fence has come:

```
generation          1         2         3         4
resolution known    yes       yes       no        no        →  two are ended
request known       → ended   → ended   → open    → pending successor
```

A resolution beyond the gap waits like a request does. No order of arrival takes part, so every order gives the same
cases, at most one of them open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Request:
    """A case request of one generation that was verified with its owner."""

    event_id: UUID
    case_ref: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """Billing's fact that ends one generation, and the event that brought it."""

    event_id: UUID
    fact_ref: str
    fact_digest: str


@dataclass(frozen=True, slots=True)
class Case:
    """One case that exists.

    Attributes:
        ended_by: the resolution of this generation, unless the case is open.
        follows: the resolution of the generation before, on which this case came to be; None for the first.
    """

    generation: int
    state: Literal["open", "ended"]
    request: Request
    ended_by: Resolution | None
    follows: Resolution | None


def decide(requests: Mapping[int, Request], resolutions: Mapping[int, Resolution]) -> tuple[Case, ...]:
    """The cases that exist, oldest first; a known request without a case here is a pending successor."""
    ended = ended_generations(resolutions)
    return tuple(
        Case(
            generation=generation,
            state="ended" if generation <= ended else "open",
            request=requests[generation],
            ended_by=resolutions[generation] if generation <= ended else None,
            follows=resolutions.get(generation - 1),
        )
        for generation in sorted(requests)
        if generation <= ended + 1
    )


def ended_generations(resolutions: Mapping[int, Resolution]) -> int:
    """How many generations, from the first on without a gap, are ended."""
    ended = 0
    while ended + 1 in resolutions:
        ended += 1
    return ended
