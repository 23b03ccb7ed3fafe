"""The Python twin of the command line."""

from __future__ import annotations

import pickle
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pytest

import headrace
from headrace import errors
from headrace.operators.read.jsonl import Jsonl
from headrace.operators.text.length import Length
from headrace.storage.channels import move_channel
from tests.cli.support import best_cpu_seconds


def _pipeline(folder: Path) -> headrace.Pipeline:
    (folder / "in").mkdir()
    (folder / "in" / "a.jsonl").write_text('{"id": "a", "text": "weir"}\n{"id": "b", "text": "<b>a headrace"}\n')
    steps = (Jsonl(root=str(folder / "in")), Length(min_chars=5))
    return headrace.Pipeline(pipeline="p", output="docs/p", steps=steps)


def test_import_is_quick() -> None:
    assert best_cpu_seconds("import headrace", 0.1) < 0.1  # the interpreter's own start included


def test_version_is_the_distributions() -> None:
    assert headrace.__version__ == version("headrace")


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nope"):
        headrace.nope  # noqa: B018  (the access is the test)
    assert not hasattr(headrace, "lance")


def test_names_are_the_rooms_own() -> None:
    from headrace.pipelines.run import resume, run
    from headrace.storage.lake import Lake

    assert headrace.run is run
    assert headrace.resume is resume
    assert headrace.Lake is Lake
    assert headrace.errors is errors


def test_run_open_and_explain(tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    result = headrace.run(_pipeline(tmp_path), lake=lake)
    assert (result.reference, result.status) == ("docs/p@2", "published")
    dataset = headrace.open(result.reference, lake)
    assert dataset.to_arrow(["id"]).to_pydict() == {"id": ["b"]}
    assert dataset.why("a").outcome == "dropped"
    assert headrace.resume(result.run, lake=lake).status == "already published"


def test_datasets_without_their_companions(tmp_path: Path) -> None:
    lake = headrace.Lake.resolve(str(tmp_path / "lake"))
    assert headrace.datasets(lake) == []
    headrace.run(_pipeline(tmp_path), lake=lake)
    assert lake.names() == ["docs/p", "docs/p.quarantine", "docs/p.rejects"]
    assert headrace.datasets(lake) == ["docs/p"]
    assert headrace.datasets(lake.uri) == ["docs/p"]


def test_a_dataset_named_like_a_companion_is_listed(tmp_path: Path) -> None:
    from headrace.storage.commit import create_target
    from headrace.storage.contract import DOCUMENT, Contract

    lake = headrace.Lake.resolve(str(tmp_path / "lake"))
    create_target(lake, "own.rejects", Contract(DOCUMENT))
    assert headrace.datasets(lake) == ["own.rejects"]


def test_open_takes_references_and_the_lake_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_LAKE", str(tmp_path / "lake"))
    headrace.run(_pipeline(tmp_path))
    move_channel(headrace.Lake.resolve(), "docs/p", "prod", 1, "look")
    assert [headrace.open(ref).version for ref in ("docs/p", "docs/p@2", "docs/p@prod")] == [2, 2, 1]
    with pytest.raises(headrace.errors.DatasetNotFound):
        headrace.open("docs/q")


def test_result_shows_in_a_notebook_and_pickles(tmp_path: Path) -> None:
    result = headrace.run(_pipeline(tmp_path), lake=str(tmp_path / "lake"))
    shown = result._repr_html_()
    assert "<b>docs/p@2</b>, published" in shown
    assert "<td>text.length</td><td>2</td><td>1</td><td>min_chars 1</td><td>0</td>" in shown
    assert "report" not in repr(result)
    assert pickle.loads(pickle.dumps(result)) == result


def test_notebook_escapes_what_it_shows() -> None:
    step = {"index": 0, "op": "<i>", "rows_in": 1, "kept": 0, "dropped": {"<b>": 1}, "quarantined": 0}
    shown = headrace.RunResult("r", "docs/p", 1, "published", {"steps": [step]}, {})._repr_html_()
    assert "<i>" not in shown
    assert "&lt;b&gt; 1" in shown


def test_load_pipeline_and_pipeline_are_equal(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        "pipeline: p\noutput: docs/p\nsteps:\n- {op: read.jsonl, root: in}\n- {op: text.length, min_chars: 5}\n"
    )
    steps = (Jsonl(root="in"), Length(min_chars=5))
    written = headrace.Pipeline(pipeline="p", output="docs/p", steps=steps)
    assert headrace.load_pipeline(tmp_path / "p.yaml") == written


def test_scan_of_an_open_dataset_gives_batches(tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    headrace.run(_pipeline(tmp_path), lake=lake)
    batches = list(headrace.open("docs/p", lake).scan(["text"]))
    assert pa.Table.from_batches(batches).to_pydict() == {"text": ["<b>a headrace"]}
