from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.errors import DatasetNotFound, SpecError
from headrace.storage.channels import move_channel, set_tag
from headrace.storage.commit import publish
from headrace.storage.head import open_head
from headrace.storage.lake import Lake
from headrace.storage.open import open_pinned, open_version, resolve_version
from headrace.storage.reference import Reference
from tests.storage.support import NAME, ids_in, staged, target


@pytest.fixture
def published(lake: Lake) -> Lake:
    """Versions 1 (empty), 2 and 3."""
    target(lake)
    for id in ("a", "b"):
        publish(lake, NAME, staged(lake, id), f"run {id}", {})
    return lake


def test_every_kind_of_reference(published: Lake) -> None:
    move_channel(published, NAME, "prod", 2, "checked")
    set_tag(published, NAME, "v1", 1)
    told = {at: resolve_version(published, Reference(NAME, at)) for at in (None, 1, 2, "prod", "v1")}
    assert told == {None: 3, 1: 1, 2: 2, "prod": 2, "v1": 1}
    assert ids_in(published, f"{NAME}@prod") == ["a"]


def test_what_is_open_stays_at_its_version(published: Lake) -> None:
    dataset = open_version(published, NAME)
    publish(published, NAME, staged(published, "c"), "run c", {})
    assert dataset.version == 3
    assert dataset.to_table(columns=["id"])["id"].to_pylist() == ["a", "b"]


def test_the_chain_decides_where_the_lance_tag_lags(published: Lake) -> None:
    move_channel(published, NAME, "prod", 3, "checked")
    open_head(published, NAME).tags.update("prod", 2)
    assert resolve_version(published, f"{NAME}@prod") == 3


def test_missing_versions_and_tags_list_what_there_is(published: Lake) -> None:
    move_channel(published, NAME, "prod", 2, "checked")
    set_tag(published, NAME, "v1", 1)
    with pytest.raises(DatasetNotFound, match=r"version 9.*versions are 1-3"):
        open_version(published, f"{NAME}@9")
    with pytest.raises(DatasetNotFound, match=r"'prdo'.*there are prod"):
        open_version(published, f"{NAME}@prdo")
    with pytest.raises(DatasetNotFound, match=r"'zzz'.*there are prod, v1"):
        open_version(published, f"{NAME}@zzz")
    with pytest.raises(DatasetNotFound, match="near names: docs/python"):
        open_version(published, "docs/pyton@2")
    with pytest.raises(SpecError, match="version or a time"):
        open_version(published, f"{NAME}@2026-12-01")


def test_gaps_in_the_versions_are_told(published: Lake) -> None:
    set_tag(published, NAME, "first", 1)
    head = open_head(published, NAME)
    head.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)
    with pytest.raises(DatasetNotFound, match="versions are 1, 3"):
        open_version(published, f"{NAME}@2")
    with pytest.raises(DatasetNotFound, match="it may be cleaned away"):
        open_pinned(published, NAME, 2)
