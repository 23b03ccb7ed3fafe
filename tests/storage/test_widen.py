from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.storage import commit
from headrace.storage.commit import publish, stage
from headrace.storage.contract import contract_of
from headrace.storage.head import open_head
from headrace.storage.lake import Lake
from headrace.storage.widen import add_null_columns
from tests.storage.support import NAME, documents, ids_in, staged, target

URL = pa.field("url", pa.string())


def test_old_rows_are_null_in_a_new_column(lake: Lake) -> None:
    target(lake)
    publish(lake, NAME, staged(lake, "a"), "r1", {})
    add_null_columns(lake, NAME, [URL, pa.field("text", pa.large_string())])
    assert "url" in contract_of(lake, NAME).schema.names
    publish(lake, NAME, stage(lake, NAME, documents(["b"]).append_column("url", pa.array(["u"]))), "r2", {})
    assert open_head(lake, NAME).to_table(columns=["id", "url"]).to_pylist() == [
        {"id": "a", "url": None},
        {"id": "b", "url": "u"},
    ]
    assert contract_of(lake, NAME).key == "id"


def test_what_is_there_makes_no_version(lake: Lake) -> None:
    target(lake)
    add_null_columns(lake, NAME, [URL])
    add_null_columns(lake, NAME, [URL])
    assert open_head(lake, NAME).version == 2


def test_rows_staged_before_are_published_after(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    target(lake)
    fragments = staged(lake, "a", "b")
    waiting = [URL]

    def widen(point: str) -> None:
        if point == "commit.before" and waiting:
            add_null_columns(lake, NAME, [waiting.pop()])

    monkeypatch.setattr(commit, "fault", widen)
    publish(lake, NAME, fragments, "r1", {})
    assert ids_in(lake) == ["a", "b"]
    assert open_head(lake, NAME).to_table(columns=["url"])["url"].to_pylist() == [None, None]
