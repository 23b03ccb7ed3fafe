"""The same texts in every physical form that a table may hand to an operator, and texts that break things."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

# Empty, one word, one character, scripts without spaces or from right to left, emoji, every kind of line end.
EDGE_TEXTS: tuple[str | None, ...] = (
    "",
    None,
    " ",
    "a",
    "\n",
    "\r\n",
    "word",
    "two words",
    "中文文本没有空格",
    "ひらがな と カタカナ",
    "שלום עולם",
    "مرحبا بالعالم",
    "😀 👩‍👩‍👧 ok",
    "a\r\nb\rc\nd",
    "nel\x85ls\u2028ps\u2029end",
    "\x1c\x1d\x1e\x1f",
    "e\u0301 \u00e9",
    "\ufeffbom",
    "tab\tand\x0bvt\x0cff",
    "...",
    "# - • …",
    "\U0010ffff",
    "x" * 100,
    "nul\x00inside",
)

_PIECES = (
    *("the", "be", "to", "of", "and", "that", "have", "with", "The", "word", "x" * 9, "a1", "1", "１"),  # noqa: RUF001
    *("#", "...", "..", "…", "•", "- ", "!", "«»", "—", "\x00", "\x7f", "\x1b", "\ufeff", "\u200b"),
    *(" ", " ", " ", "  ", "\t", "\n", "\n", "\n\n\n", " \n", "\r", "\r\n", "\x85", "\u2028", "\u2029", "\x1c"),
    *("\x0b", "\x0c", "\xa0", "\u3000", "\u2000", "\u1680"),
    *("é", "e", "\u0301", "\u0334", "\u0345", "\u1100", "\u1161", "\u11a8", "가", "\u212b", "\u0344", "\u2126"),
    *("中", "文", "ש", "م", "😀", "\U0001d15e", "abcdefgh"),
)


def fuzz_texts(count: int, seed: int, longest: int = 30) -> list[str]:
    """Random texts of up to `longest` pieces of trouble."""
    choose = random.Random(seed)
    return ["".join(choose.choices(_PIECES, k=choose.randrange(longest + 1))) for _ in range(count)]


def corpus_texts(folder: Path, count: int, seed: int) -> list[str]:
    """Real documents, drawn at random from the folder's JSON lines."""
    import io
    import json

    import pytest

    zstandard = pytest.importorskip("zstandard")
    lines: list[str] = []
    for path in sorted(folder.glob("docs-*.jsonl.zst")):
        with path.open("rb") as file:
            stream = zstandard.ZstdDecompressor().stream_reader(file)
            lines += io.TextIOWrapper(stream, encoding="utf-8").readlines()
    if not lines:
        pytest.skip(f"no docs-*.jsonl.zst in {folder}")
    return [json.loads(line)["text"] for line in random.Random(seed).sample(lines, min(count, len(lines)))]


def text_table(texts: Sequence[str | None], kind: pa.DataType | None = None, column: str = "text") -> pa.Table:
    """A table with ids and one text column."""
    ids = pa.array([f"row-{i}" for i in range(len(texts))], pa.string())
    return pa.table({"id": ids, column: pa.array(texts, kind or pa.large_string())})


def layouts(texts: Sequence[str | None]) -> Iterator[tuple[str, pa.Table]]:
    """(name, table) of equal tables that lie differently in memory."""
    for kind in (pa.string(), pa.large_string()):
        whole = text_table(texts, kind)
        yield f"{kind}", whole
        padded = text_table(["before, é", *texts, "behind"], kind)
        yield f"{kind}, sliced", padded.slice(1, len(texts)).set_column(0, "id", whole.column("id"))
        cut = len(texts) // 3
        yield f"{kind}, chunked", pa.concat_tables([whole.slice(0, cut), whole.slice(cut, 0), whole.slice(cut)])
        yield f"{kind}, bytes under nulls", _dirty_nulls(whole)


def _dirty_nulls(table: pa.Table) -> pa.Table:
    """The same table, where bytes lie under the nulls."""
    column = table.column("text").combine_chunks()
    is_large = pa.types.is_large_string(column.type)
    texts = [b"dirty" if text is None else text.encode() for text in column.to_pylist()]
    plain = pa.array(texts, pa.large_binary() if is_large else pa.binary())
    _, offsets, content = plain.buffers()
    valid = pa.array([text is not None for text in column.to_pylist()], pa.bool_()).buffers()[1]
    dirty = pa.Array.from_buffers(column.type, len(column), [valid, offsets, content])
    return table.set_column(1, "text", dirty)
