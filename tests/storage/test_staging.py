from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.errors import DataError, DatasetNotFound
from headrace.storage.commit import create_target, publish
from headrace.storage.contract import Contract
from headrace.storage.head import open_head
from headrace.storage.lake import Lake
from headrace.storage.staging import StagedFile, StagedFragment, check_staged, missing_files, path_in, stage
from tests.storage.support import NAME, documents, ids_in, staged, target


def test_staged_rows_are_not_in_the_dataset(lake: Lake) -> None:
    target(lake)
    (fragment,) = stage(lake, NAME, documents(["a", "b"]))
    assert fragment.rows == 2
    assert [Path(path_in(lake, NAME, file.path)).stat().st_size for file in fragment.files] == [
        file.size_bytes for file in fragment.files
    ]
    assert ids_in(lake) == []


def test_a_unit_record_carries_it(lake: Lake) -> None:
    target(lake)
    (fragment,) = staged(lake, "a")
    assert StagedFragment.from_dict(json.loads(json.dumps(fragment.to_dict()))) == fragment


def test_nothing_is_staged_for_no_rows(lake: Lake) -> None:
    target(lake)
    assert stage(lake, NAME, documents([])) == []
    assert not (Path(lake.dataset_uri(NAME)) / "data").exists()


def test_a_drifted_type_is_refused_even_without_rows(lake: Lake) -> None:
    target(lake)
    for table in (documents(["a"]), documents([])):
        drifted = table.set_column(4, "source_offset", table["source_offset"].cast(pa.float64()))
        with pytest.raises(DataError, match=r"'source_offset': got double; the contract has int64"):
            stage(lake, NAME, drifted)
    assert not (Path(lake.dataset_uri(NAME)) / "data").exists()


def test_staging_needs_its_target(lake: Lake) -> None:
    with pytest.raises(DatasetNotFound, match=NAME):
        stage(lake, NAME, documents(["a"]))
    assert not lake.exists()


def test_a_missing_file_is_named(lake: Lake) -> None:
    target(lake)
    fragments = staged(lake, "a", "b")
    check_staged(lake, NAME, fragments)
    assert missing_files(lake, NAME, fragments) == []
    gone = fragments[1].files[0].path
    Path(path_in(lake, NAME, gone)).unlink()
    assert missing_files(lake, NAME, fragments) == [gone]
    with pytest.raises(DataError, match=f"{gone} missing"):
        check_staged(lake, NAME, fragments)


def test_a_cut_file_is_named_with_both_sizes(lake: Lake) -> None:
    target(lake)
    fragments = staged(lake, "a", "b")
    cut = fragments[1].files[0]
    path = Path(path_in(lake, NAME, cut.path))
    path.write_bytes(path.read_bytes()[:-1])
    assert missing_files(lake, NAME, fragments) == [cut.path]
    with pytest.raises(DataError, match=rf"{cut.path} with {cut.size_bytes - 1} bytes.*with {cut.size_bytes} bytes"):
        check_staged(lake, NAME, fragments)


def test_a_file_named_twice_is_refused(lake: Lake) -> None:
    target(lake)
    fragments = staged(lake, "a")
    with pytest.raises(DataError, match=f"{fragments[0].files[0].path} named 2 times"):
        check_staged(lake, NAME, [*fragments, *fragments])


def test_no_files_of_a_missing_dataset_are_all_missing(lake: Lake) -> None:
    fragment = StagedFragment("{}", (StagedFile("x.lance", 1),), 1)
    assert missing_files(lake, NAME, [fragment]) == ["x.lance"]
    assert not lake.exists()


def test_slices_of_nested_structs_are_written_whole(lake: Lake) -> None:
    """Lance 14.0.2 panics on them."""
    inner = pa.struct([("in", pa.struct([("q", pa.int64())]))])
    count = 9_000
    rows = pa.array([{"in": {"q": n}} for n in range(count)] + [None], inner)
    schema = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("o", inner)])
    create_target(lake, "nested", Contract(schema))
    ids = pa.chunked_array(
        [pa.array([str(n) for n in range(count + 1)]).slice(at, 3000) for at in range(0, count + 1, 3000)]
    )
    whole, sliced = pa.chunked_array([rows]), pa.chunked_array([rows.slice(0, 8192), rows.slice(8192)])
    assert stage(lake, "nested", pa.Table.from_arrays([ids, sliced], schema=schema))
    publish(lake, "nested", stage(lake, "nested", pa.Table.from_arrays([ids, whole], schema=schema)), "r", {})
    assert open_head(lake, "nested").to_table()["o"].to_pylist() == rows.to_pylist()
