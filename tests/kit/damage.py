"""Small changes to a text, such as a careless peer or another release would make: for tests of two readers."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

PIECES: Final = (
    b"", b" ", b"\n", b'"', b"\\", b",", b":", b"{", b"}", b"[", b"]", b"0", b"1", b"-0", b"1.0", b"1e3",
    b"9007199254740993",
    b"null", b"true", b"\\u0000", b"\\u00e9", b"\\ud83d\\ude00", b"\xc3\xa9", b"\xf0\x9f\x98\x80", b"\xff", b"\x00",
    b'"a":1,', b',"zz":1', b"A", b"a", b"/", b"\\/", b"29", b"31",
)  # fmt: skip
"""What a change puts in: every kind of token, another spelling of each, and bytes that are no text."""


@st.composite
def damaged(draw: st.DrawFn, text: bytes) -> bytes:
    """The text as it is, or with up to three pieces replaced, inserted or cut out."""
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        length = draw(st.sampled_from((0, 0, 1, 1, 2, 6, 16)))
        text = text[:start] + draw(st.sampled_from(PIECES)) + text[start + length :]
    return text
