from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as arrow_parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import DataError, InputChanged, SpecError
from headrace.operators.read.parquet import Parquet
from tests.operators.read.reading import Read, read_all


def _write(folder: Path, name: str, group: int = 1 << 20, **columns: Any) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    arrow_parquet.write_table(pa.table(columns), folder / name, row_group_size=group)
    return folder


def test_rows_keep_their_columns(tmp_path: Path) -> None:
    meta = [{"k": "v", "l": [b"x"]}, None]
    _write(tmp_path / "books", "b/a.parquet", id=[7, 8], text=["a", "b"], meta=meta, day=pa.array([1, 2], pa.date32()))
    read = read_all(Parquet(root=str(tmp_path / "books")))
    assert read.rows.drop_columns("day").to_pylist() == [
        {"id": "7", "text": "a", "source": "books", "source_file": "b/a.parquet", "source_offset": 0, "meta": meta[0]},
        {"id": "8", "text": "b", "source": "books", "source_file": "b/a.parquet", "source_offset": 1, "meta": None},
    ]
    assert str(read.rows.schema.field("meta").type) == "struct<k: large_string, l: list<element: large_binary>>"
    assert read.rows.schema.field("day").type == pa.date32()


def test_files_are_unified(tmp_path: Path) -> None:
    _write(tmp_path, "a.parquet", text=["a"], n=[1])
    _write(tmp_path, "b.parquet", text=["b"], n=[2.5], late=["x"], source=["own"])
    _write(tmp_path, "c.parquet", text=pa.array(["c"]).dictionary_encode(), n=pa.array([None], pa.null()))
    read = read_all(Parquet(root=str(tmp_path)))
    assert read.column("n") == [1.0, 2.5, None]
    assert read.column("late") == [None, "x", None]
    assert read.column("source") == [tmp_path.name, "own", tmp_path.name]
    assert read.rows.schema.names[5:] == ["n", "late"]


def test_files_that_conflict_stop_the_plan(tmp_path: Path) -> None:
    _write(tmp_path, "a.parquet", text=["a"], n=[1])
    _write(tmp_path, "b.parquet", text=["b"], n=["x"])
    reader = Parquet(root=str(tmp_path))
    with pytest.raises(DataError, match=r"b\.parquet, column 'n': got string; files before it have int64"):
        reader.schema(reader.files())
    read_all(Parquet(root=str(tmp_path), exclude=["b.*"]))


def test_no_text_is_told_when_planned(tmp_path: Path) -> None:
    reader = Parquet(root=str(_write(tmp_path, "a.parquet", content=["a"])))
    with pytest.raises(SpecError, match="columns are content"):
        reader.schema(reader.files())
    assert read_all(Parquet(root=str(tmp_path), text_column="content")).column("text") == ["a"]


def test_rows_without_text_are_errors(tmp_path: Path) -> None:
    _write(tmp_path, "a.parquet", text=["a", None, "c"])
    _write(tmp_path, "b.parquet", other=[1, 2])
    read = read_all(Parquet(root=str(tmp_path)))
    assert read.column("source_offset") == [0, 2]
    told = "the text is missing or null"
    assert read.told("source_file", "source_offset", "error") == [
        ("a.parquet", 1, told),
        ("b.parquet", 0, told),
        ("b.parquet", 1, told),
    ]


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Parquet, Read]:
    folder = tmp_path_factory.mktemp("grouped")
    texts = [f"text {i}" * (i % 5) if i % 11 else None for i in range(100)]
    _write(folder, "a.parquet", group=9, text=texts, id=[f"k{i}" for i in range(100)])
    _write(folder, "b.parquet", text=pa.array([], pa.string()))
    reader = Parquet(root=str(folder))
    return reader, read_all(reader, 1 << 30)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(part_bytes=st.integers(1, 3000))
def test_parts_of_any_size_give_the_whole_file(grouped: tuple[Parquet, Read], part_bytes: int) -> None:
    reader, whole = grouped
    assert (whole.rows.num_rows, whole.errors.num_rows) == (90, 10)
    read = read_all(reader, part_bytes)
    assert read.rows.equals(whole.rows)
    assert read.errors.equals(whole.errors)


def test_parts_are_row_groups_and_small_ones_are_joined(grouped: tuple[Parquet, Read]) -> None:
    reader = grouped[0]
    file = reader.files()[0]
    assert [(part.start, part.stop) for part in reader.parts(file, 1)] == [(i, i + 1) for i in range(12)]
    joined = reader.parts(file, 1000)
    assert 1 < len(joined) < 12
    assert sum(part.size_bytes for part in joined) == sum(part.size_bytes for part in reader.parts(file, 1))


def test_batches_are_bounded(tmp_path: Path) -> None:
    reader = Parquet(root=str(_write(tmp_path, "a.parquet", text=["x" * 1_000_000] * 30)))
    (file,) = reader.files()
    batches = list(reader.build()(reader.parts(file, 1 << 40)[0], reader.schema([file])))
    assert max(batch.rows["text"].nbytes for batch in batches) < 9 << 20
    assert sum(batch.rows.num_rows for batch in batches) == 30


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 no footer here PAR1", b"\xff" * 1000])
def test_a_footer_that_cannot_be_read_is_an_error_row(tmp_path: Path, content: bytes) -> None:
    _write(tmp_path, "b.parquet", text=["b"])
    (tmp_path / "a.parquet").write_bytes(content)
    read = read_all(Parquet(root=str(tmp_path)))
    assert read.column("text") == ["b"]
    ((file, offset, error),) = read.told("source_file", "source_offset", "error")
    assert (file, offset) == ("a.parquet", 0)
    assert error.startswith("the footer can't be read")


def test_a_damaged_row_group_costs_its_rows_only(tmp_path: Path) -> None:
    _write(tmp_path, "a.parquet", group=10, text=[f"text {i}" for i in range(30)])
    footer = arrow_parquet.read_metadata(tmp_path / "a.parquet")
    at = footer.row_group(1).column(0).dictionary_page_offset or footer.row_group(1).column(0).data_page_offset
    body = bytearray((tmp_path / "a.parquet").read_bytes())
    body[at : at + 8] = b"\xff" * 8
    (tmp_path / "a.parquet").write_bytes(body)
    read = read_all(Parquet(root=str(tmp_path)))
    assert read.column("source_offset") == [*range(10), *range(20, 30)]
    ((offset, error),) = read.told("source_offset", "error")
    assert offset == 10
    assert error.startswith("rows 10 to 19 (row group 1) can't be decoded")


def test_text_that_is_no_utf8_is_an_error_row(tmp_path: Path) -> None:
    texts = pa.Array.from_buffers(pa.binary(), 3, pa.array([b"a", b"\xff", b"c"]).buffers()).view(pa.string())
    read = read_all(Parquet(root=str(_write(tmp_path, "a.parquet", text=texts))))
    assert read.column("text") == ["a", "c"]
    assert [offset for (offset,) in read.told("source_offset")] == [1]


def test_a_changed_file_stops_the_run(tmp_path: Path) -> None:
    reader = Parquet(root=str(_write(tmp_path, "a.parquet", text=["a"])))
    (file,) = reader.files()
    schema, part = reader.schema([file]), reader.parts(file, 1)[0]
    _write(tmp_path, "a.parquet", text=["b"])
    with pytest.raises(InputChanged, match=r"a\.parquet"):
        list(reader.build()(part, schema))
