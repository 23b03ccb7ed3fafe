from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import lance
import pyarrow as pa
import pytest

from headrace.errors import DatasetNotFound, MissingDependency, SpecError
from headrace.storage.channels import move_channel, set_tag
from headrace.storage.commit import publish
from headrace.storage.dataset import Dataset
from headrace.storage.lake import Lake
from headrace.storage.staging import stage
from tests.storage.support import NAME, documents, staged, target


@pytest.fixture
def published(lake: Lake) -> Lake:
    """Version 2 with a and b, version 3 with c too; prod at 2."""
    target(lake)
    publish(lake, NAME, stage(lake, NAME, documents(["a", "b"])), "r1", {})
    publish(lake, NAME, staged(lake, "c"), "r2", {})
    move_channel(lake, NAME, "prod", 2, "checked")
    return lake


def test_opens_pinned(published: Lake) -> None:
    dataset = Dataset.open(f"{NAME}@prod", published)
    assert (dataset.name, dataset.version, dataset.num_rows) == (NAME, 2, 2)
    assert dataset.uri == published.dataset_uri(NAME)
    assert dataset.schema.names == ["id", "text", "source", "source_file", "source_offset"]
    assert Dataset.open(NAME, published.uri).version == 3


def test_opens_in_the_lake_of_the_environment(published: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_LAKE", published.uri)
    assert Dataset.open(NAME).num_rows == 3


def test_head_scan_and_arrow_agree(published: Lake) -> None:
    dataset = Dataset.open(NAME, published)
    assert dataset.head(2).equals(dataset.to_arrow().slice(0, 2))
    assert dataset.head(2, ["id"])["id"].to_pylist() == ["a", "b"]
    batches = list(dataset.scan(columns=["id"], filter="id != 'b'", batch_size=1))
    assert [batch.num_rows for batch in batches] == [1, 1]
    assert pa.Table.from_batches(batches)["id"].to_pylist() == ["a", "c"]
    assert dataset.to_arrow(["id"], "source_offset = 1")["id"].to_pylist() == ["b"]


def test_wrong_columns_and_filters_are_told_at_once(published: Lake) -> None:
    dataset = Dataset.open(NAME, published)
    with pytest.raises(SpecError, match=r"column 'txt'.*try text"):
        dataset.scan(columns=["txt"])
    for wrong in ("txt = 'a'", "id = 'a", "id = "):
        with pytest.raises(SpecError, match="the filter is SQL over the columns id, text"):
            dataset.scan(filter=wrong)
        with pytest.raises(SpecError, match="the filter is SQL"):
            dataset.to_arrow(filter=wrong)


def test_polars_frames(published: Lake) -> None:
    pytest.importorskip("polars")
    assert Dataset.open(NAME, published).to_polars(["id"])["id"].to_list() == ["a", "b", "c"]


def test_without_polars_the_extra_is_named(published: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingDependency, match=r"headrace\[pipelines\]"):
        Dataset.open(NAME, published).to_polars()


def test_log_tells_the_history_newest_first(published: Lake) -> None:
    set_tag(published, NAME, "v1", 2)
    log = Dataset.open(NAME, published).log()
    assert [(entry.version, entry.run, entry.rows, entry.tags) for entry in log] == [
        (3, "r2", 3, ()),
        (2, "r1", 2, ("prod", "v1")),
        (1, None, 0, ()),
    ]
    assert [entry.version for entry in Dataset.open(f"{NAME}@prod", published).log()] == [2, 1]
    assert [entry.version for entry in Dataset.open(NAME, published).log(limit=1)] == [3]


def test_log_has_messages(published: Lake) -> None:
    uri = published.dataset_uri(NAME)
    lance.write_dataset(documents(["d"]), uri, mode="append", commit_message="by hand")
    assert [entry.message for entry in Dataset.open(NAME, published).log(2)] == ["by hand", None]


@pytest.fixture
def far_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("far_zone")
def test_times_are_utc_wherever_this_runs(published: Lake) -> None:
    when = Dataset.open(NAME, published).log()[0].when
    assert when.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - when) < timedelta(minutes=5)


def test_tags_and_why(published: Lake) -> None:
    dataset = Dataset.open(NAME, published)
    assert dataset.tags() == {"prod": 2}
    assert dataset.why("c").run == "r2"
    assert Dataset.open(f"{NAME}@2", published).why("c").outcome == "unknown"


def test_moves_of_channels_are_newest_first(published: Lake) -> None:
    move_channel(published, NAME, "prod", 3, "more rows", run="r2")
    move_channel(published, NAME, "next", 3, "to try")
    set_tag(published, NAME, "paper", 2)  # does not move
    moves = Dataset.open(f"{NAME}@2", published).moves()
    assert {channel: [(m.n, m.before, m.to, m.why, m.run) for m in listed] for channel, listed in moves.items()} == {
        "prod": [(2, 2, 3, "more rows", "r2"), (1, None, 2, "checked", None)],
        "next": [(1, None, 3, "to try", None)],
    }


def test_pickles_as_lake_name_and_version(published: Lake) -> None:
    dataset = Dataset.open(f"{NAME}@prod", published)
    assert dataset.num_rows == 2  # the handle is open now
    pickled = pickle.dumps(dataset)
    assert len(pickled) < 500
    assert pickle.loads(pickled).head().equals(dataset.head())


def test_notebook_view_is_escaped(lake: Lake) -> None:
    target(lake)
    publish(lake, NAME, stage(lake, NAME, documents(["<b>bold</b>"])), "r1", {})
    dataset = Dataset.open(NAME, lake)
    html = dataset._repr_html_()
    assert "<b>bold" not in html
    assert "&lt;b&gt;bold" in html
    assert "docs/python@2" in html
    assert "1 rows" in repr(dataset)
    assert len(dataset.show(1)) == 1


def test_a_cleaned_version_is_told(published: Lake) -> None:
    dataset = Dataset(published, NAME, 99)
    with pytest.raises(DatasetNotFound, match="version 99"):
        dataset.head()


def test_import_is_light() -> None:
    heavy = "{'ray', 'numba', 'polars', 'prefect', 'torch', 'zstandard'}"
    code = f"import sys, headrace.storage.dataset, headrace.storage.lease; print(sorted({heavy} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
