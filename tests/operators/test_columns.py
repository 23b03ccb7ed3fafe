from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from headrace.errors import DataError
from headrace.operators.columns import text_buffers, text_chunks, text_column
from tests.operators.layouts import EDGE_TEXTS, layouts, text_table


@pytest.mark.parametrize(
    ("name", "table"), list(layouts(EDGE_TEXTS)), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_layout_gives_the_same_bytes(name: str, table: pa.Table) -> None:
    texts = text_column(table, "text", "here")
    assert texts.type == pa.large_string()
    assert texts.to_pylist() == list(EDGE_TEXTS)
    content, offsets = text_buffers(texts)
    rows = [bytes(content[start:end]).decode() for start, end in pairwise(offsets)]
    assert rows == [text or "" for text in EDGE_TEXTS]
    assert not content.flags.writeable
    assert not offsets.flags.writeable


def test_a_slice_without_nulls_is_read_where_it_lies() -> None:
    for kind in (pa.string(), pa.large_string()):
        content, offsets = text_buffers(
            text_column(text_table(["before", "é", "", "xyz"], kind).slice(1, 3), "text", "")
        )
        assert [bytes(content[start:end]).decode() for start, end in pairwise(offsets)] == ["é", "", "xyz"]


def test_no_rows() -> None:
    for table in (text_table([]), pa.schema([("text", pa.string())]).empty_table(), text_table(["x"]).slice(1)):
        texts = text_column(table, "text", "here")
        assert len(texts) == 0
        content, offsets = text_buffers(texts)
        assert len(offsets) == 1
        assert content.dtype == np.uint8


def test_one_chunk_is_not_copied() -> None:
    table = text_table(["some text", "more"])
    chunk = table.column("text").chunk(0)
    assert text_column(table, "text", "here").buffers()[2].address == chunk.buffers()[2].address


@pytest.mark.parametrize(
    ("table", "got"),
    [
        (pa.table({"body": ["x"]}), "the columns body"),
        (pa.table({"text": [1]}), "text: int64"),
        (pa.table({"text": pa.array([b"x"], pa.large_binary())}), "text: large_binary"),
        (pa.table([pa.array(["x"]), pa.array(["y"])], ["text", "text"]), "the columns text, text"),
    ],
)
def test_other_columns_are_refused(table: pa.Table, got: str) -> None:
    with pytest.raises(DataError) as caught:
        text_chunks(table, "text", "text.some_operator")
    assert (caught.value.place, caught.value.got) == ("text.some_operator", got)


def test_bytes_that_are_no_text_are_refused_before_a_kernel_sees_them() -> None:
    good = pa.array(["fine"] * 3)
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xf0\x9f\x98"]).buffers())
    table = pa.table({"text": pa.chunked_array([good, bad])})
    with pytest.raises(DataError, match="rows 3 to 4"):
        text_column(table, "text", "here")
