from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace.errors import DataError
from headrace.loaders.assemble import Chunk, Part
from headrace.loaders.columns import Columns, gather, numbers, shape_of
from headrace.loaders.source import Group

BATCH = pa.RecordBatch.from_pydict(
    {
        "id": pa.array(["a", "b", None, "d"], pa.string()),
        "text": pa.array(["", "été", "c", "d"], pa.large_string()),
        "raw": pa.array([b"1", b"", b"\xff", b"4"], pa.large_binary()),
        "count": pa.array([1, 2, 3, 4], pa.int32()),
        "unsigned": pa.array([1, 2, 3, 2**64 - 1], pa.uint64()),
        "score": pa.array([0.5, None, 2.5, 3.5], pa.float32()),
        "half": pa.array(np.array([1, 2, 3, 4], np.float16), pa.float16()),
        "keep": pa.array([True, False, True, True]),
        "when": pa.array([0, None, 2, 3], pa.timestamp("us", "UTC")),
        "tokens": pa.array([[1, 2], [3, 4], [5, 6], [7, 8]], pa.list_(pa.int16(), 2)),
        "spans": pa.array([[1, 2, 3], [], None, [4]], pa.list_(pa.int64())),
        "label": pa.array(["x", "y", "x", "x"]).dictionary_encode(),
        "meta": pa.array([{"a": 1}, None, {"a": 3}, {"a": 4}], pa.struct([("a", pa.int64())])),
        "words": pa.array([["p"], ["q", "r"], [], None], pa.list_(pa.string())),
    }
)


def chunk(*stretches: tuple[list[int], list[int]], rows: pa.RecordBatch = BATCH) -> Chunk:
    """Each stretch (rows of the group, rows of the chunk) comes from a group of its own."""
    parts = [Part(Group([], [], rows), np.array(source), np.array(target)) for source, target in stretches]
    return Chunk(0, sum(len(part.source) for part in parts), parts)


MIXED = chunk(([3, 1], [0, 2]), ([0, 2], [3, 1]))  # rows 3, 2, 1, 0


def batch(is_torch: bool = False, of: Chunk = MIXED, rows: pa.RecordBatch = BATCH) -> dict[str, Any]:
    return Columns(of, rows.schema, "docs/python@3", is_torch).batch(0, of.stop)


@pytest.mark.parametrize("name", BATCH.schema.names)
def test_every_type_comes_in_the_order_of_the_chunk(name: str) -> None:
    column = batch()[name]
    told = [list(one) if isinstance(one, np.ndarray) else one for one in column]
    wanted = BATCH.column(name).to_pylist()[::-1]
    if name == "score":
        assert told[0] == 3.5
        assert np.isnan(told[2])
    elif name == "when":
        assert column.dtype == np.dtype("datetime64[us]")
        assert column[0] == np.datetime64(3, "us")
        assert np.isnat(column[2])
        assert wanted[0] == datetime.datetime(1970, 1, 1, 0, 0, 0, 3, datetime.UTC)
    else:
        assert told == wanted


def test_numpy_kinds() -> None:
    got = batch()
    assert {name: got[name].dtype.name for name in ("count", "unsigned", "score", "half", "keep", "tokens")} == {
        "count": "int32",
        "unsigned": "uint64",
        "score": "float32",
        "half": "float16",
        "keep": "bool",
        "tokens": "int16",
    }
    assert got["tokens"].shape == (4, 2)
    assert [got[name].dtype for name in ("id", "text", "raw", "label")] == [np.dtype(object)] * 3 + [np.dtype(object)]
    assert [type(got[name]) for name in ("spans", "meta", "words")] == [list] * 3
    assert got["spans"][3].dtype == np.int64
    assert got["spans"][1] is None


def test_a_batch_is_the_trainers_own() -> None:
    columns = Columns(MIXED, BATCH.schema, "docs/python@3", False)
    first, second = columns.batch(0, 2), columns.batch(2, 4)
    first["count"][:] = -1
    first["tokens"][:] = -1
    first["spans"][0][:] = -1
    assert second["count"].tolist() == [2, 1]
    assert second["tokens"].tolist() == [[3, 4], [1, 2]]
    assert second["spans"][1].tolist() == [1, 2, 3]
    assert BATCH.column("count").to_pylist() == [1, 2, 3, 4]


def test_arrow_keeps_types_and_nulls() -> None:
    got = gather(MIXED, BATCH.schema.names)
    assert got.schema.equals(BATCH.schema)
    assert got.to_pylist() == BATCH.to_pylist()[::-1]


def test_arrow_with_rows_already_in_order() -> None:
    got = gather(chunk(([2, 0], [0, 1]), ([1], [2])), ["id", "count"])
    assert got.to_pylist() == [{"id": None, "count": 3}, {"id": "a", "count": 1}, {"id": "b", "count": 2}]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, None], pa.int64()),
        pa.array([True, None]),
        pa.array([[1, 2], None], pa.list_(pa.int32(), 2)),
        pa.array([[1, None], [2, 3]], pa.list_(pa.int32(), 2)),
        pa.array([[1, None], [2]], pa.list_(pa.int32())),
    ],
)
def test_a_null_that_has_no_place_is_an_error(array: pa.Array) -> None:
    rows = pa.RecordBatch.from_arrays([array], names=["label"])
    with pytest.raises(
        DataError, match=r"column 'label' of docs/python@3: got null in .*; ask|or ask for output='arrow'"
    ):
        batch(of=chunk(([0, 1], [0, 1]), rows=rows), rows=rows)


def test_numbers_of_a_cut_fixed_size_list() -> None:
    array = pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int64(), 2)).slice(1, 2)
    assert numbers(array, "here").tolist() == [[3, 4], [5, 6]]


def test_shapes() -> None:
    assert [shape_of(field.type) for field in BATCH.schema] == [
        *["objects"] * 3,
        *["flat"] * 6,
        "fixed",
        "lists",
        "objects",
        "values",
        "values",
    ]


def test_torch_tensors_for_numbers_only() -> None:
    torch = pytest.importorskip("torch", reason="needs the extra headrace[torch]")
    got = batch(is_torch=True)
    kinds = {name: got[name].dtype for name in ("count", "score", "half", "keep", "tokens")}
    assert kinds == {
        "count": torch.int32,
        "score": torch.float32,
        "half": torch.float16,
        "keep": torch.bool,
        "tokens": torch.int16,
    }
    assert got["count"].tolist() == [4, 3, 2, 1]
    assert got["tokens"].tolist() == [[7, 8], [5, 6], [3, 4], [1, 2]]
    assert got["spans"][3].tolist() == [1, 2, 3]
    assert isinstance(got["spans"][3], torch.Tensor)
    assert got["text"] == ["d", "c", "été", ""]
    assert got["id"] == ["d", None, "b", "a"]
    assert got["meta"] == [{"a": 4}, {"a": 3}, None, {"a": 1}]
    assert got["when"].dtype == np.dtype("datetime64[us]")
