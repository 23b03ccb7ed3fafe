from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta

import pytest

from headrace.errors import DatasetNotFound, InternalError, SpecError
from headrace.storage import channels as module
from headrace.storage.channels import channel_history, channel_version, channels, move_channel, set_tag, tags
from headrace.storage.commit import publish
from headrace.storage.head import open_head
from headrace.storage.lake import Lake
from headrace.storage.objects import ObjectStore
from tests.storage.support import NAME, target


@pytest.fixture
def published(lake: Lake) -> Lake:
    """Versions 1 to 9, all empty."""
    target(lake)
    for number in range(2, 10):
        publish(lake, NAME, [], f"run {number}", {})
    return lake


def lance_tag(lake: Lake, tag: str) -> int:
    return int(open_head(lake, NAME).tags.get_version(tag))


def test_moves_make_a_history(published: Lake) -> None:
    assert move_channel(published, NAME, "prod", 2, "first") == 1
    assert move_channel(published, NAME, "prod", 4, "better", run="run 4") == 2
    assert move_channel(published, NAME, "prod", 3, "rolled back") == 3
    told = [(move.n, move.before, move.to, move.why, move.run) for move in channel_history(published, NAME, "prod")]
    assert told == [(1, None, 2, "first", None), (2, 2, 4, "better", "run 4"), (3, 4, 3, "rolled back", None)]
    when = channel_history(published, NAME, "prod")[0].when
    assert when.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - when) < timedelta(minutes=5)
    assert channel_version(published, NAME, "prod") == lance_tag(published, "prod") == 3


def test_moving_to_the_same_version_is_no_move(published: Lake) -> None:
    move_channel(published, NAME, "prod", 2, "first")
    open_head(published, NAME).tags.delete("prod")  # as if the mover had died before the mirror
    assert move_channel(published, NAME, "prod", 2, "again") == 1
    assert len(channel_history(published, NAME, "prod")) == 1
    assert lance_tag(published, "prod") == 2


def test_a_publication_moves_forward_and_once(published: Lake) -> None:
    def publication(version: int, run: str) -> int:
        return move_channel(published, NAME, "prod", version, f"run {run}", run=run, is_publication=True)

    assert publication(3, "run 3") == 1
    assert publication(2, "run 2") == 1  # another run came later and has these rows too
    assert channel_version(published, NAME, "prod") == 3
    assert publication(5, "run 5") == 2
    assert move_channel(published, NAME, "prod", 3, "rolled back") == 3
    assert publication(5, "run 5") == 3  # told again, it does not undo that
    assert channel_version(published, NAME, "prod") == lance_tag(published, "prod") == 3
    assert publication(6, "run 6") == 4


def test_a_channel_protects_its_version(published: Lake) -> None:
    move_channel(published, NAME, "prod", 2, "first")
    head = open_head(published, NAME)
    head.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)
    assert open_head(published, NAME).checkout_version(2).count_rows() == 0


def test_numbers_sort_as_numbers(published: Lake) -> None:
    for turn in range(12):
        move_channel(published, NAME, "prod", 2 + turn % 2, "to and fro")
    assert [move.n for move in channel_history(published, NAME, "prod")] == list(range(1, 13))
    assert channel_version(published, NAME, "prod") == 3


def test_concurrent_movers_lose_no_move(published: Lake) -> None:
    barrier = threading.Barrier(7)
    errors: list[BaseException] = []

    def move(version: int) -> None:
        try:
            barrier.wait()
            move_channel(published, NAME, "prod", version, f"to {version}")
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)

    movers = [threading.Thread(target=move, args=(version,)) for version in range(2, 9)]
    for mover in movers:
        mover.start()
    for mover in movers:
        mover.join()
    assert errors == []
    history = channel_history(published, NAME, "prod")
    assert sorted(move.to for move in history) == list(range(2, 9))
    assert [move.before for move in history] == [None, *(move.to for move in history[:-1])]
    assert all(move.why == f"to {move.to}" for move in history)
    assert lance_tag(published, "prod") == history[-1].to


def test_a_mover_that_comes_between_makes_the_loser_look_again(
    published: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, waiting = ObjectStore.put_once, [6]

    def put_once(store: ObjectStore, key: str, body: bytes) -> bool:
        if key.startswith("channels/") and waiting:
            move_channel(published, NAME, "prod", waiting.pop(), "came between")
        return real(store, key, body)

    monkeypatch.setattr(ObjectStore, "put_once", put_once)
    assert move_channel(published, NAME, "prod", 3, "mine") == 2
    assert [(move.before, move.to) for move in channel_history(published, NAME, "prod")] == [(None, 6), (6, 3)]


def test_a_gap_in_the_chain_is_told(published: Lake) -> None:
    for version in (2, 3, 4):
        move_channel(published, NAME, "prod", version, "x")
    published.objects.delete(f"channels/{NAME}/prod/2.json")
    with pytest.raises(InternalError, match="move 2 is missing"):
        channel_history(published, NAME, "prod")


def test_channels_of_nested_names_are_kept_apart(published: Lake) -> None:
    target(published, "docs")
    move_channel(published, "docs", "python", 1, "a channel of the name of a folder")
    move_channel(published, NAME, "prod", 2, "x")
    assert channels(published, "docs") == {"python": 1}
    assert channels(published, NAME) == {"prod": 2}
    assert [move.to for move in channel_history(published, "docs", "python")] == [1]


def test_moves_are_small_readable_objects(published: Lake) -> None:
    move_channel(published, NAME, "prod", 2, "first", run="r")
    body = json.loads(published.objects.get(f"channels/{NAME}/prod/1.json"))
    assert {**body, "when": None} == {"from": None, "to": 2, "when": None, "why": "first", "run": "r"}


def test_bad_moves_are_refused(published: Lake) -> None:
    with pytest.raises(DatasetNotFound, match=r"version 10.*versions are 1 to 9"):
        move_channel(published, NAME, "prod", 10, "x")
    with pytest.raises(DatasetNotFound, match="docs/rust"):
        move_channel(published, "docs/rust", "prod", 1, "x")
    with pytest.raises(SpecError, match="every move says why"):
        move_channel(published, NAME, "prod", 2, "  ")
    for tag in ("12", "2026-12-01", "../x", "A", "it's", ""):
        with pytest.raises(SpecError, match="tag"):
            move_channel(published, NAME, tag, 2, "x")
    assert channels(published, NAME) == {}
    assert tags(published, NAME) == {}


def test_fixed_tags_never_move(published: Lake) -> None:
    set_tag(published, NAME, "v1", 2)
    set_tag(published, NAME, "v1", 2)
    with pytest.raises(SpecError, match=r"version 3; points to version 2"):
        set_tag(published, NAME, "v1", 3)
    with pytest.raises(SpecError, match="is a fixed tag"):
        move_channel(published, NAME, "v1", 3, "x")
    with pytest.raises(DatasetNotFound, match="version 99"):
        set_tag(published, NAME, "v2", 99)
    assert tags(published, NAME) == {"v1": 2}


def test_a_channel_is_no_fixed_tag(published: Lake) -> None:
    move_channel(published, NAME, "prod", 2, "x")
    set_tag(published, NAME, "v1", 3)
    with pytest.raises(SpecError, match="is a channel"):
        set_tag(published, NAME, "prod", 3)
    assert tags(published, NAME) == {"v1": 3}
    assert channels(published, NAME) == {"prod": 2}
    assert channel_version(published, NAME, "none") is None


def test_a_mirror_that_lags_is_caught_up(published: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow mover mirrors its own, older move last: the tag still ends at the head of the chain."""
    move_channel(published, NAME, "prod", 2, "x")
    real, waiting = module._lance_tags, [5]

    def slow(dataset: object) -> dict[str, int]:
        found = real(dataset)
        if waiting and channel_version(published, NAME, "prod") == 3:
            move_channel(published, NAME, "prod", waiting.pop(), "overtakes the mirror")
        return found

    monkeypatch.setattr(module, "_lance_tags", slow)
    move_channel(published, NAME, "prod", 3, "slow")
    assert channel_version(published, NAME, "prod") == lance_tag(published, "prod") == 5
