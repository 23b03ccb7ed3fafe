from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from headrace.errors import DatasetNotFound, InputChanged, SpecError
from headrace.operators.read.lance import Lance
from tests.operators.read.reading import Read, read_all

ROWS = 100


def _table(start: int, stop: int, **more: Any) -> pa.Table:
    numbers = range(start, stop)
    columns = {
        "id": [f"k{i}" for i in numbers],
        "text": pa.array([f"text {i}" for i in numbers], pa.large_string()),
        "source": ["web" if i % 2 else None for i in numbers],
        "source_file": [f"f{i}" for i in numbers],
        "source_offset": pa.array([i * 10 for i in numbers], pa.int64()),
        "n": list(numbers),
    }
    return pa.table({**columns, **more})


def _write(root: Path, table: pa.Table, name: str = "docs/web", mode: str = "create", rows: int = 30) -> None:
    lance.write_dataset(table, f"{root}/{name}.lance", mode=mode, max_rows_per_file=rows, enable_stable_row_ids=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    _write(tmp_path / "lake", _table(0, ROWS))
    return tmp_path / "lake"


def test_rows_keep_identity_and_origin(root: Path) -> None:
    read = read_all(Lance(dataset="docs/web", lake=str(root)))
    assert read.rows.schema.names == ["id", "text", "source", "source_file", "source_offset", "n"]
    wanted = _table(0, ROWS).to_pylist()
    for row in wanted:
        row["source"] = row["source"] or "docs/web"
    assert read.rows.to_pylist() == wanted
    assert read.errors.num_rows == 0


def test_the_version_is_pinned_when_planned(root: Path) -> None:
    reader = Lance(dataset="docs/web", lake=str(root))
    files = reader.files()
    schema = reader.schema(files)
    _write(root, _table(ROWS, ROWS + 5), mode="append")
    lance.dataset(f"{root}/docs/web.lance").delete("n < 50")
    read = reader.build()
    rows = [batch.rows for file in files for part in reader.parts(file, 1 << 20) for batch in read(part, schema)]
    assert pa.concat_tables(rows)["n"].to_pylist() == list(range(ROWS))
    assert read_all(Lance(dataset="docs/web@1", lake=str(root))).rows.num_rows == ROWS
    assert read_all(reader).column("n") == list(range(50, ROWS + 5))


def test_fragments_that_a_version_did_not_touch_keep_their_mark(root: Path) -> None:
    reader = Lance(dataset="docs/web", lake=str(root))
    before = {file.path: file.mark for file in reader.files()}
    assert len(before) == 4
    lance.dataset(f"{root}/docs/web.lance").delete("n = 5")
    after = {file.path: file.mark for file in reader.files()}
    assert [path for path in after if before[path] != after[path]] == ["docs/web/000000"]


@pytest.fixture(scope="module")
def deleted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lance, Read]:
    root = tmp_path_factory.mktemp("deleted")
    _write(root, _table(0, ROWS))
    lance.dataset(f"{root}/docs/web.lance").delete("n % 7 = 3")
    reader = Lance(dataset="docs/web", lake=str(root))
    return reader, read_all(reader, 1 << 30)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(part_bytes=st.integers(1, 3000))
def test_parts_of_any_size_give_the_whole_dataset(deleted: tuple[Lance, Read], part_bytes: int) -> None:
    reader, whole = deleted
    assert whole.column("n") == [n for n in range(ROWS) if n % 7 != 3]
    assert read_all(reader, part_bytes).rows.equals(whole.rows)


def test_a_dataset_without_origin_gets_its_own(tmp_path: Path) -> None:
    _write(tmp_path, pa.table({"body": ["a", None, "c"], "source_file": [1, 2, 3]}), "notes")
    read = read_all(Lance(dataset="notes", lake=str(tmp_path), text_column="body", source="mine"))
    assert read.rows.drop_columns("id").to_pylist() == [
        {"text": "a", "source": "mine", "source_file": "notes/000000", "source_offset": 0, "source_file_": 1},
        {"text": "c", "source": "mine", "source_file": "notes/000000", "source_offset": 2, "source_file_": 3},
    ]
    assert read.told("source_offset", "error") == [(1, "the text is missing or null")]


def test_rows_may_have_no_text(tmp_path: Path) -> None:
    _write(tmp_path, pa.table({"id": ["a", "b"], "tokens": [[1], [2, 3]]}), "tokens")
    with pytest.raises(SpecError, match="text_column"):
        read_all(Lance(dataset="tokens", lake=str(tmp_path)))
    read = read_all(Lance(dataset="tokens", lake=str(tmp_path), text_column=None))
    assert read.rows.schema.names == ["id", "source", "source_file", "source_offset", "tokens"]
    assert read.column("tokens") == [[1], [2, 3]]


def test_what_is_not_there_is_told(root: Path) -> None:
    for dataset in ("docs/wbe", "docs/web@99", "docs/web@prod"):
        with pytest.raises(DatasetNotFound):
            Lance(dataset=dataset, lake=str(root)).files()
    with pytest.raises(ValidationError, match="dataset name"):
        Lance(dataset="No Name", lake=str(root))


def test_an_empty_dataset_is_an_error_unless_allowed(tmp_path: Path) -> None:
    _write(tmp_path, _table(0, 0), "none")
    with pytest.raises(SpecError, match="no rows"):
        Lance(dataset="none", lake=str(tmp_path)).files()
    read = read_all(Lance(dataset="none", lake=str(tmp_path), allow_empty=True))
    assert read.rows.num_rows == 0
    assert "n" in read.rows.schema.names


def test_a_dataset_made_anew_stops_the_run(root: Path) -> None:
    reader = Lance(dataset="docs/web", lake=str(root))
    files = reader.files()
    schema = reader.schema(files)
    part = reader.parts(files[0], 1 << 20)[0]
    shutil.rmtree(root / "docs")
    _write(root, _table(0, ROWS))
    with pytest.raises(InputChanged, match="docs/web"):
        list(reader.build()(part, schema))


def test_a_worker_needs_no_lake_of_its_own(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_LAKE", str(root))
    reader = Lance(dataset="docs/web")
    files = reader.files()
    schema = reader.schema(files)
    monkeypatch.setenv("HEADRACE_LAKE", str(tmp_path / "elsewhere"))
    (batch,) = reader.build()(reader.parts(files[0], 1 << 20)[0], schema)
    assert batch.rows.num_rows == 30
