"""Channels (tags that move) and fixed tags.

A channel is a chain of create-only objects `channels/<name>/<channel>/<n>.json`, each a move: from, to, when, why.
Two movers cannot both write move n, so nobody's move is lost, unlike with a Lance tag, which the last writer wins.
The Lance tag of the same name mirrors the head of the chain and protects the version's files from clean-up.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import lance

from headrace.errors import CommitConflict, DatasetNotFound, InternalError, SpecError, StorageUnavailable
from headrace.storage.foreign import FIX, first_line, storage_calls
from headrace.storage.head import open_head, version_numbers
from headrace.storage.lake import Lake
from headrace.storage.reference import check_name, check_tag

_TRIES = 100
_MIRROR_TRIES = 20


@dataclass(frozen=True)
class ChannelMove:
    """One move of a channel; `before` is None at its first."""

    n: int
    before: int | None
    to: int
    when: datetime
    why: str
    run: str | None


def move_channel(
    lake: Lake, name: str, channel: str, version: int, why: str, run: str | None = None, is_publication: bool = False
) -> int:
    """Let the channel point to this version from now on; returns the number of the move.

    To where it points already is no move, and gives the number of the last one.  Nor is a publication's move one where
    the channel stands at a later version, which holds these rows too, or where the run moved it before: telling again
    what is published must not undo somebody's rollback.
    """
    check_tag(channel)
    if not why.strip():
        raise SpecError(f"channel {name}@{channel}", "no reason", "every move says why", "give one")
    dataset = open_head(lake, name)
    _check_version(dataset, name, version)
    if channel in _lance_tags(dataset) and not channel_history(lake, name, channel):
        rule = "is a fixed tag, and those never move"
        raise SpecError(f"channel {name}@{channel}", "", rule, "use another name for the channel")
    for _ in range(_TRIES):
        history = channel_history(lake, name, channel)
        last = history[-1] if history else None
        told = is_publication and any(move.run == run or (move is last and move.to > version) for move in history)
        if last is not None and (told or last.to == version):
            _mirror(lake, name, channel)
            return last.n
        n = last.n + 1 if last else 1
        before = last.to if last else None
        move = {"from": before, "to": version, "when": datetime.now(UTC).isoformat(), "why": why, "run": run}
        if lake.objects.put_once(f"{_folder(name, channel)}/{n}.json", json.dumps(move).encode()):
            _mirror(lake, name, channel)
            return n
    raise CommitConflict(
        f"channel {name}@{channel}", "", "others kept moving it", "look at its history, then try again"
    )


def channel_version(lake: Lake, name: str, channel: str) -> int | None:
    """Where the channel points; None where there is no such channel."""
    history = channel_history(lake, name, channel)
    return history[-1].to if history else None


def channel_history(lake: Lake, name: str, channel: str) -> list[ChannelMove]:
    """Every move of the channel, oldest first; empty where there is no such channel."""
    check_name(name)
    check_tag(channel)
    moves = [_move(lake, key, n) for key, n in _keys(lake, name).get(channel, [])]
    for n, move in enumerate(moves, start=1):
        if move.n != n:
            rule = f"move {n} is missing from the chain"
            raise InternalError(f"channel {name}@{channel}", "", rule, f"restore {_folder(name, channel)}/{n}.json")
    return moves


def channels(lake: Lake, name: str) -> dict[str, int]:
    """Every channel of the dataset and where it points, by name."""
    check_name(name)
    return {channel: _move(lake, *keys[-1]).to for channel, keys in sorted(_keys(lake, name).items())}


def set_tag(lake: Lake, name: str, tag: str, version: int) -> None:
    """Give the version a fixed name.  The same once more is fine; to move one is refused."""
    check_tag(tag)
    dataset = open_head(lake, name)
    _check_version(dataset, name, version)
    if channel_history(lake, name, tag):
        raise SpecError(f"tag {name}@{tag}", "", "is a channel", "move the channel, or use another name")
    try:
        with storage_calls(dataset.uri):
            dataset.tags.create(tag, version)
    except ValueError as error:
        there = _lance_tags(dataset).get(tag)
        if there is None:
            raise StorageUnavailable(dataset.uri, first_line(error), "the tag could not be written", FIX) from error
        if there != version:
            rule = f"points to version {there}, and fixed tags never move"
            raise SpecError(f"tag {name}@{tag}", f"version {version}", rule, "use another tag or a channel") from error


def tags(lake: Lake, name: str) -> dict[str, int]:
    """Fixed tags of the dataset and their versions, by name; channels are left out."""
    moving = _keys(lake, name)
    return {tag: version for tag, version in _lance_tags(open_head(lake, name)).items() if tag not in moving}


def _folder(name: str, channel: str) -> str:
    return f"channels/{name}/{channel}"


def _keys(lake: Lake, name: str) -> dict[str, list[tuple[str, int]]]:
    """Per channel of exactly this dataset (`a/b` lists below `a` too): the keys of its moves with their numbers."""
    found: dict[str, list[tuple[str, int]]] = {}
    prefix = f"channels/{name}/"
    for info in lake.objects.list(prefix):
        channel, slash, file = info.key.removeprefix(prefix).partition("/")
        number = file.removesuffix(".json")
        if slash and number.isdigit() and file.endswith(".json"):
            found.setdefault(channel, []).append((info.key, int(number)))
    return {channel: sorted(keys, key=lambda key: key[1]) for channel, keys in found.items()}


def _move(lake: Lake, key: str, n: int) -> ChannelMove:
    body: dict[str, Any] = json.loads(lake.objects.get(key))
    return ChannelMove(n, body["from"], body["to"], datetime.fromisoformat(body["when"]), body["why"], body["run"])


def _mirror(lake: Lake, name: str, channel: str) -> None:
    """Set the Lance tag to the head of the chain; look again afterwards, since movers may mirror out of order."""
    dataset = open_head(lake, name)
    for _ in range(_MIRROR_TRIES):
        wanted = channel_version(lake, name, channel)
        there = _lance_tags(dataset).get(channel)
        if wanted is None or there == wanted:
            return
        try:
            with storage_calls(dataset.uri):
                if there is None:
                    dataset.tags.create(channel, wanted)
                else:
                    dataset.tags.update(channel, wanted)
        except (ValueError, StorageUnavailable):
            continue  # another mover made or is writing the tag; the next look decides
    place, rule = f"channel {name}@{channel}", "the move is kept, but its Lance tag could not be written"
    raise StorageUnavailable(place, "", rule, "move the channel to the same version again")


def _lance_tags(dataset: lance.LanceDataset) -> dict[str, int]:
    with storage_calls(dataset.uri):
        return {tag: int(found["version"]) for tag, found in sorted(dataset.tags.list().items())}


def _check_version(dataset: lance.LanceDataset, name: str, version: int) -> None:
    versions = version_numbers(dataset)
    if version not in versions:
        told = f"versions are {versions[0]} to {versions[-1]}" if versions else "it has no versions"
        raise DatasetNotFound(f"dataset {name}", f"version {version}", "must be one of its versions", told)
