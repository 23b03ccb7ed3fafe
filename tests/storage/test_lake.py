from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from headrace.errors import DatasetNotFound, SpecError
from headrace.storage.channels import channel_history, channels
from headrace.storage.dataset import Dataset
from headrace.storage.lake import Lake
from headrace.storage.lineage import lineage_of, publications
from tests.storage.support import target


def test_argument_wins_over_environment_over_default(workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Lake.resolve().uri == str(workdir / "lake")
    monkeypatch.setenv("HEADRACE_LAKE", "elsewhere")
    assert Lake.resolve().uri == str(workdir / "elsewhere")
    assert Lake.resolve("/data/../lake/").uri == "/lake"
    assert list(workdir.iterdir()) == []


def test_home_and_file_uris_are_folders() -> None:
    assert Lake.resolve("~/lake").uri == os.path.expanduser("~/lake")
    assert Lake.resolve("file:///data/my%20lake").uri == "/data/my lake"
    assert Lake.resolve("s3://bucket/lake/").uri == "s3://bucket/lake"


@pytest.mark.parametrize(
    "uri", ["", "  ", "ftp://host/lake", "memory://", "s3://key:s3cr3t@bucket/lake", "s3://b/l?s3cr3t"]
)
def test_other_uris_are_refused_without_repeating_secrets(uri: str) -> None:
    with pytest.raises(SpecError, match="lake") as told:
        Lake.resolve(uri)
    assert "s3cr3t" not in str(told.value)


def test_pickle_and_repr_hold_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_STORAGE_OPTIONS", '{"aws_secret_access_key": "s3cr3t"}')
    lake = Lake.resolve("s3://bucket/lake")
    assert lake.storage_options() == {"aws_secret_access_key": "s3cr3t"}
    assert lake.objects.root == "s3://bucket/lake/_headrace"
    assert b"s3cr3t" not in pickle.dumps(lake)
    assert "s3cr3t" not in repr(lake)
    assert pickle.loads(pickle.dumps(lake)) == lake


def test_names_are_found_at_every_depth(lake: Lake) -> None:
    for name in ("docs/python", "docs", "a.b-c_d", "docs/python.rejects"):
        target(lake, name)
    lake.objects.put("runs/x", b"")
    (Path(lake.uri) / "half.lance" / "data").mkdir(parents=True)  # as an interrupted create leaves it
    (Path(lake.uri) / "Notes and more").mkdir()
    (Path(lake.uri) / "_lineage.lance" / "_versions").mkdir(parents=True)
    assert lake.names() == ["a.b-c_d", "docs", "docs/python", "docs/python.rejects"]


def test_a_missing_lake_reads_as_empty_and_stays_missing(lake: Lake) -> None:
    assert not lake.exists()
    assert lake.names() == []
    assert lineage_of(lake, "docs") == []
    assert publications(lake, "docs", 3) == []
    assert channels(lake, "docs") == {}
    assert channel_history(lake, "docs", "prod") == []
    assert lake.objects.list("units") == []
    for ref in ("docs", "docs@3", "docs@prod"):
        with pytest.raises(DatasetNotFound, match="docs"):
            Dataset.open(ref, lake)
    assert not Path(lake.uri).exists()


def test_an_existing_lake_is_seen(lake: Lake) -> None:
    target(lake)
    assert lake.exists()


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a//b", "_headrace/x", "_", "_a/../../b", "a.lance/b"])
def test_a_dataset_never_lies_outside_the_lake(name: str, lake: Lake) -> None:
    with pytest.raises(SpecError, match="dataset name"):
        lake.dataset_uri(name)


def test_odd_folders_can_be_a_lake(tmp_path: Path) -> None:
    lake = Lake.resolve(str(tmp_path / "größe #1 ?x %20 '\"" / "lake"))
    target(lake, "docs")
    assert lake.names() == ["docs"]
    assert Dataset.open("docs", lake).num_rows == 0


def test_a_default_lake_holds_inside_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_LAKE", str(tmp_path / "outer"))
    with Lake(str(tmp_path / "inner")).as_default():
        assert Lake.resolve() == Lake(str(tmp_path / "inner"))
        assert Lake.resolve(str(tmp_path / "named")) == Lake(str(tmp_path / "named"))
    assert Lake.resolve() == Lake(str(tmp_path / "outer"))
