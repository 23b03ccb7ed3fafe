from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from headrace.errors import DatasetNotFound, StorageUnavailable
from headrace.storage.commit import publish
from headrace.storage.head import head_or_none, open_head, transaction_properties, version_numbers
from headrace.storage.lake import Lake
from tests.storage.support import NAME, staged, target


def test_near_names_are_told(lake: Lake) -> None:
    for name in ("docs/python", "docs/rust", "chats"):
        target(lake, name)
    with pytest.raises(DatasetNotFound, match=r"'docs/pyton'.*near names: docs/python"):
        open_head(lake, "docs/pyton")
    with pytest.raises(DatasetNotFound, match="near names: chats, docs/python, docs/rust"):
        open_head(lake, "zzz")


def test_an_empty_and_a_missing_lake_are_told_apart(lake: Lake) -> None:
    with pytest.raises(DatasetNotFound, match="no lake"):
        open_head(lake, NAME)
    Path(lake.uri).mkdir()
    with pytest.raises(DatasetNotFound, match="the lake has no datasets"):
        open_head(lake, NAME)
    assert head_or_none(lake, NAME) is None


def test_a_broken_dataset_is_not_a_missing_one(lake: Lake) -> None:
    target(lake)
    for manifest in (Path(lake.dataset_uri(NAME)) / "_versions").iterdir():
        manifest.write_bytes(b"nonsense")
    with pytest.raises(StorageUnavailable, match=NAME):
        head_or_none(lake, NAME)


def test_versions_that_were_cleaned_away_are_left_out(lake: Lake) -> None:
    target(lake)
    for run in ("one", "two"):
        publish(lake, NAME, staged(lake, run), run, {})
    head = open_head(lake, NAME)
    assert version_numbers(head) == [1, 2, 3]
    head.cleanup_old_versions(older_than=timedelta(0))
    head = open_head(lake, NAME)
    assert version_numbers(head) == [3]
    assert transaction_properties(head, 2) == {}
    assert transaction_properties(head, 3) == {"headrace.run": "two"}
