"""The datasets that a run publishes to: created, or widened; never silently another type."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.errors import DataError
from headrace.pipelines.run import run
from headrace.pipelines.target import fit, prepare_targets
from headrace.storage.contract import DOCUMENT, QUARANTINE, REJECTS, contract_of
from headrace.storage.lake import Lake
from headrace.storage.open import open_version
from tests.pipelines.plain import AddColumn, Shout, documents, lines_pipeline, write_lines

SCORE = pa.field("score", pa.float64(), nullable=False)


def test_all_three_are_created_with_their_contracts(lake: Lake) -> None:
    prepare_targets(lake, "docs/web", DOCUMENT)
    assert lake.names() == ["docs/web", "docs/web.quarantine", "docs/web.rejects"]
    contract = contract_of(lake, "docs/web")
    assert contract.key == "id"
    assert contract.schema.names == DOCUMENT.names
    assert contract_of(lake, "docs/web.rejects").schema.names == REJECTS.names
    assert contract_of(lake, "docs/web.rejects").key is None  # an id is dropped by many runs
    assert contract_of(lake, "docs/web.quarantine").schema.names == QUARANTINE.names
    prepare_targets(lake, "docs/web", DOCUMENT)
    assert open_version(lake, "docs/web").version == 1


def test_a_new_column_is_null_in_old_rows(lake: Lake) -> None:
    prepare_targets(lake, "web", DOCUMENT)
    prepare_targets(lake, "web", DOCUMENT.append(SCORE))
    found = contract_of(lake, "web").schema.field("score")
    assert (found.type, found.nullable) == (pa.float64(), True)
    prepare_targets(lake, "web", DOCUMENT)  # an older pipeline goes on
    assert "score" in contract_of(lake, "web").schema.names


def test_runs_with_other_columns_share_a_dataset(lake: Lake, tmp_path: Path) -> None:
    first = lines_pipeline(write_lines(tmp_path / "a", a=["one"]), pipeline="first")
    run(first, lake=lake, engine="local")
    wider = lines_pipeline(write_lines(tmp_path / "b", b=["two"]), AddColumn(name="score"), pipeline="second")
    run(wider, lake=lake, engine="local")
    narrow = lines_pipeline(write_lines(tmp_path / "c", c=["three"]), Shout(), pipeline="third")
    run(narrow, lake=lake, engine="local")
    table = open_version(lake, "out").to_table()
    assert table.schema.field("score").type == pa.int64()
    assert sorted(zip(table["text"].to_pylist(), table["score"].to_pylist(), strict=True)) == [
        ("THREE!", None),
        ("one", None),
        ("two", None),
    ]


def test_another_type_is_refused_before_anything_runs(lake: Lake) -> None:
    prepare_targets(lake, "web", DOCUMENT.append(SCORE))
    other = DOCUMENT.append(pa.field("score", pa.string()))
    rule = "dataset web, column 'score': got string; the dataset has it as double; publish to another dataset"
    with pytest.raises(DataError, match=rule):
        prepare_targets(lake, "web", other)


def test_another_type_of_the_first_column_is_refused_too(lake: Lake) -> None:
    prepare_targets(lake, "web", DOCUMENT)
    with pytest.raises(DataError, match="dataset web, column 'id': got large_string; the dataset has it as string"):
        prepare_targets(lake, "web", DOCUMENT.set(0, pa.field("id", pa.large_string(), nullable=False)))


def test_rows_get_the_columns_that_their_pipeline_does_not_give(lake: Lake) -> None:
    prepare_targets(lake, "web", DOCUMENT.append(SCORE.with_nullable(True)))
    contract = contract_of(lake, "web")
    fitted = fit(documents("a").select(["text", "id", "source", "source_file", "source_offset"]), contract)
    assert fitted.column_names == contract.schema.names
    assert fitted["score"].to_pylist() == [None]
    assert fitted["text"].to_pylist() == ["a"]
