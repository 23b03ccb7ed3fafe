from __future__ import annotations

import pickle
import threading
from pathlib import Path

import pytest

from headrace.errors import SpecError, StorageUnavailable
from headrace.storage.objects import ObjectInfo, ObjectStore, _remote


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    return ObjectStore(str(tmp_path / "root"))


def test_put_once_keeps_the_first(objects: ObjectStore) -> None:
    assert objects.put_once("runs/1.json", b"first")
    assert not objects.put_once("runs/1.json", b"second")
    assert objects.get("runs/1.json") == b"first"


def test_a_race_has_one_winner_and_its_body_stays(objects: ObjectStore) -> None:
    racers, rounds = 8, 25
    barrier = threading.Barrier(racers)
    won: list[tuple[str, bytes]] = []

    def race(racer: int) -> None:
        body = f"racer {racer}".encode() * 1000
        for number in range(rounds):
            barrier.wait()
            if objects.put_once(f"race/{number}", body):
                won.append((f"race/{number}", body))

    threads = [threading.Thread(target=race, args=(racer,)) for racer in range(racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(key for key, _ in won) == sorted(f"race/{number}" for number in range(rounds))
    assert all(objects.get(key) == body for key, body in won)


def test_put_replaces(objects: ObjectStore) -> None:
    objects.put("a", b"one")
    objects.put("a", b"two")
    assert objects.get("a") == b"two"


def test_what_is_missing(objects: ObjectStore) -> None:
    objects.put("there", b"")
    with pytest.raises(KeyError, match="missing"):
        objects.get("missing")
    assert objects.get_or_none("missing") is None
    assert objects.size_bytes("missing") is None
    objects.delete("missing")


def test_list_is_sorted_and_ends_at_folders(objects: ObjectStore) -> None:
    for key in ("b/2", "b/1/x", "bb/1", "a"):
        objects.put(key, b"12")
    assert objects.list("b") == objects.list("b/") == [ObjectInfo("b/1/x", 2), ObjectInfo("b/2", 2)]
    assert [info.key for info in objects.list()] == ["a", "b/1/x", "b/2", "bb/1"]
    assert objects.list("none") == []
    assert objects.folders() == ["b", "bb"]
    assert objects.folders("b") == ["b/1"]


def test_size_and_delete(objects: ObjectStore) -> None:
    objects.put("a", b"12345")
    assert objects.size_bytes("a") == 5
    objects.delete("a")
    assert objects.size_bytes("a") is None


def test_reads_create_nothing(objects: ObjectStore) -> None:
    assert objects.list() == []
    assert objects.folders() == []
    assert objects.get_or_none("a") is None
    assert objects.size_bytes("a") is None
    objects.delete("a")
    assert not Path(objects.root).exists()


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", "../a", "a/../b", ".", "a b", "a#1", "a\n", "a\\b", "ä", "%2e"]
)
def test_hostile_keys_are_refused(key: str, objects: ObjectStore) -> None:
    for call in (objects.get_or_none, objects.size_bytes, objects.delete, lambda key: objects.put_once(key, b"")):
        with pytest.raises(SpecError, match="object key"):
            call(key)


def test_a_broken_storage_is_told_as_such(objects: ObjectStore) -> None:
    objects.put("file", b"")
    with pytest.raises(StorageUnavailable, match="file/below") as told:
        objects.put_once("file/below", b"")
    assert told.value.retryable
    assert "\n" not in str(told.value)


def test_lance_options_open_a_remote_store_too() -> None:
    options = {
        "aws_endpoint": "http://127.0.0.1:9",
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "aws_region": "local",
        "allow_http": "true",
        "aws_virtual_hosted_style_request": "false",
        "connect_timeout": "5",
        "request_timeout": "30s",
        "client_max_retries": "3",
    }
    store = _remote("s3://bucket/lake", tuple(options.items()))
    assert store.prefix == "lake"
    assert store.config["endpoint"] == "http://127.0.0.1:9"
    assert store.client_options["allow_http"] in (True, "true")


def test_pickles_as_its_root(objects: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    options = '{"aws_access_key_id": "k", "aws_secret_access_key": "s3cr3t", "aws_region": "local"}'
    monkeypatch.setenv("HEADRACE_STORAGE_OPTIONS", options)
    store = ObjectStore("s3://bucket/lake")
    store._readable()
    assert b"s3cr3t" not in pickle.dumps(store)
    assert pickle.loads(pickle.dumps(store)) == store
