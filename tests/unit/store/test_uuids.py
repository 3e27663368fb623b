"""Identifiers read without the constructor are those that the constructor makes."""

from __future__ import annotations

import copy
import pickle
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from seapost.store.uuids import UUID_OID, UuidLoader


@given(st.binary(min_size=16, max_size=16))
def test_the_loader_makes_what_the_constructor_makes(data: bytes) -> None:
    """Equal in value, type, hash, text, safety, order and copies, from bytes and from a view of them."""
    made = UuidLoader(UUID_OID).load(data)
    expected = UUID(bytes=data)
    assert type(made) is UUID
    assert (made, hash(made), str(made), made.is_safe) == (expected, hash(expected), str(expected), expected.is_safe)
    assert made <= expected <= made
    assert pickle.loads(pickle.dumps(made)) == copy.copy(made) == expected  # noqa: S301 - our own bytes
    assert UuidLoader(UUID_OID).load(memoryview(data)) == expected
