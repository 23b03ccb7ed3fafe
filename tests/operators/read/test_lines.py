from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.operators.read import _lines
from headrace.operators.read._lines import Chunk, count_newlines, cut_lines, find_lines, first_line_at
from headrace.operators.read._streams import BrokenStream

CONTENTS = st.lists(st.sampled_from([b"", b"a", b"bb", b"ccc" * 5, b"\r", b"x\r"]), max_size=12).map(b"\n".join)


def _blocks(content: bytes, size: int, broken: bool = False) -> Iterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]
    if broken:
        raise BrokenStream("cut off")


def _starts(content: bytes) -> list[int]:
    return [at for at in range(len(content)) if at == 0 or content[at - 1 : at] == b"\n"]


@given(CONTENTS, st.integers(1, 9))
def test_chunks_are_whole_lines_and_all_of_them(content: bytes, size: int) -> None:
    chunks = list(cut_lines(_blocks(content, size), 0))
    assert b"".join(chunk.data for chunk in chunks) == content
    assert all(chunk.data.endswith(b"\n") for chunk in chunks[:-1])
    assert [chunk.offset for chunk in chunks] == [
        sum(len(before.data) for before in chunks[:number]) for number in range(len(chunks))
    ]


@given(CONTENTS, st.integers(1, 9), st.integers(1, 9))
def test_parts_own_the_lines_that_start_in_them(content: bytes, part: int, size: int) -> None:
    found: list[int] = []
    for start in range(0, len(content), part):
        stop = min(start + part, len(content))
        handle = io.BytesIO(content)
        offset = first_line_at(handle, start, stop)
        if offset >= stop:
            continue
        assert handle.tell() == offset
        for chunk in cut_lines(_blocks(content[offset:], size), offset, stop):
            assert content[chunk.offset : chunk.offset + len(chunk.data)] == chunk.data
            found += [chunk.offset + at for at in _starts(bytes(chunk.data))]
    assert found == _starts(content)


@given(CONTENTS)
def test_lines_are_found_without_their_ends(content: bytes) -> None:
    lines = find_lines(bytearray(content))
    all_lines = content.split(b"\n")
    wanted = [(number, line.removesuffix(b"\r")) for number, line in enumerate(all_lines) if line.removesuffix(b"\r")]
    spans = zip(lines.numbers.tolist(), lines.starts.tolist(), lines.ends.tolist(), strict=True)
    assert [(number, content[start:end]) for number, start, end in spans] == wanted
    assert lines.total == len(all_lines) - (content.endswith(b"\n") or not content)


@given(CONTENTS, st.integers(0, 60))
def test_newlines_before_a_part_are_counted(content: bytes, stop: int) -> None:
    handle = io.BytesIO(content)
    handle.seek(3)
    assert count_newlines(handle, stop) == content[:stop].count(b"\n")
    assert handle.tell() == 3


@pytest.mark.parametrize(
    ("content", "whole", "rest"),
    [(b"a\nb\nc", b"a\nb\n", Chunk(4, bytearray(b"c"), "cut off")), (b"a\n", b"a\n", Chunk(2, bytearray(), "cut off"))],
)
def test_a_broken_stream_gives_whole_lines_and_then_its_error(content: bytes, whole: bytes, rest: Chunk) -> None:
    *before, last = cut_lines(_blocks(content, 2, broken=True), 0)
    assert b"".join(chunk.data for chunk in before) == whole
    assert last == rest


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_line_beyond_the_limit_is_cut_and_the_others_stay(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(_lines, "LINE_LIMIT_BYTES", 20)
    monkeypatch.setattr(_lines, "RAW_LIMIT_BYTES", 10)
    content = b"one\n" + b"y" * 2000 + b"\ntwo\nthree\n" + b"z" * 2000
    chunks = list(cut_lines(_blocks(content, size), 0))
    told = "the line is longer than 20 bytes"
    if size < 1000:  # a block with a whole long line in it is held already
        assert [(c.offset, bytes(c.data)) for c in chunks if c.error == told] == [(4, b"y" * 10), (2015, b"z" * 10)]
    good = b"".join(chunk.data for chunk in chunks if not chunk.error)
    assert good.replace(b"y", b"").replace(b"z", b"").split() == [b"one", b"two", b"three"]


def test_a_line_beyond_the_limit_belongs_to_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lines, "LINE_LIMIT_BYTES", 20)
    monkeypatch.setattr(_lines, "RAW_LIMIT_BYTES", 10)
    content = b"one\n" + b"y" * 100 + b"\ntwo\nthree\n"
    for stop, wanted in ((50, []), (105, []), (106, [b"two\n"]), (110, [b"two\nthree\n"])):
        chunks = list(cut_lines(_blocks(content, 8), 0, stop))
        assert [chunk.offset for chunk in chunks if chunk.error] == [4]
        rest = b"".join(chunk.data for chunk in chunks if not chunk.error and chunk.offset > 4)
        assert [rest] == (wanted or [b""])
