from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.errors import SpecError, StorageUnavailable
from headrace.storage.faults import fault
from headrace.storage.lease import Lease
from headrace.storage.objects import ObjectStore
from tests.storage.support import ended, process


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    return ObjectStore(str(tmp_path / "objects"))


class Clock:
    """A clock that moves only while somebody sleeps; `during` happens in each sleep."""

    def __init__(self, during: Callable[[], object] = lambda: None) -> None:
        self.now, self.during = 0.0, during

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.during()


def acquire(objects: ObjectStore, clock: Clock, ttl_seconds: float = 10) -> Lease | None:
    return Lease.acquire(objects, "run/1", ttl_seconds, clock.time, clock.sleep)


def held(lease: Lease | None) -> Lease:
    assert lease is not None
    return lease


def test_a_free_lease_is_taken_at_once(objects: ObjectStore) -> None:
    clock = Clock()
    assert held(acquire(objects, clock)).epoch == 1
    assert clock.now == 0


def test_a_released_lease_is_free_at_once(objects: ObjectStore) -> None:
    clock = Clock()
    held(acquire(objects, clock)).release()
    assert held(acquire(objects, clock)).epoch == 2
    assert clock.now == 0


def test_a_live_holder_keeps_it(objects: ObjectStore) -> None:
    holder = held(acquire(objects, Clock()))
    clock = Clock(during=holder.beat)
    assert acquire(objects, clock) is None
    assert clock.now < 10
    assert not holder.is_lost


def test_a_silent_holder_loses_it_after_its_own_time_to_live(objects: ObjectStore) -> None:
    holder = held(acquire(objects, Clock(), ttl_seconds=10))
    holder.beat()
    clock = Clock()
    assert held(acquire(objects, clock, ttl_seconds=1)).epoch == 2
    assert 10 < clock.now < 12
    assert not holder.beat()
    assert holder.is_lost


def test_who_watches_too_long_gives_way_to_who_came_first(objects: ObjectStore) -> None:
    held(acquire(objects, Clock()))
    quick: list[Lease | None] = []

    def overtake() -> None:
        if not quick:
            quick.append(None)
            quick[0] = acquire(objects, Clock())

    clock = Clock(during=overtake)
    assert acquire(objects, clock) is None
    assert clock.now < 1
    assert held(quick[0]).epoch == 2


def test_one_of_many_takes_a_free_lease(objects: ObjectStore) -> None:
    barrier = threading.Barrier(8)
    taken: list[Lease | None] = []

    def race() -> None:
        barrier.wait()
        taken.append(Lease.acquire(objects, "run/1", 0.2))

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    epochs = [lease.epoch for lease in taken if lease]
    assert len(taken) == 8
    assert sorted(set(epochs)) == sorted(epochs)  # a slow thread may find the silent winner expired; never two at once


def test_a_lost_reply_still_makes_the_owner(objects: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real = ObjectStore.put_once

    def reply_lost(store: ObjectStore, key: str, body: bytes) -> bool:
        real(store, key, body)
        return False

    monkeypatch.setattr(ObjectStore, "put_once", reply_lost)
    assert held(acquire(objects, Clock())).epoch == 1


def test_names_are_kept_apart(objects: ObjectStore) -> None:
    for name in ("run/1", "run/11", "run"):
        assert held(Lease.acquire(objects, name, 10)).epoch == 1


def test_a_context_beats_and_releases(objects: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    beaten = threading.Event()
    real = Lease.beat

    def beat(lease: Lease) -> bool:
        try:
            return real(lease)
        finally:
            if lease._beats >= 2:
                beaten.set()

    monkeypatch.setattr(Lease, "beat", beat)
    with held(Lease.acquire(objects, "run/1", 0.3)) as lease:
        assert beaten.wait(30)
        assert not lease.is_lost
        assert Lease.acquire(objects, "run/1", 0.3) is None
    assert held(Lease.acquire(objects, "run/1", 0.3)).epoch == 2


def test_a_failed_beat_is_tried_again(objects: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    beats: list[int] = []
    done = threading.Event()

    def beat(lease: Lease) -> bool:
        beats.append(lease.epoch)
        if len(beats) < 3:
            raise StorageUnavailable("objects")
        done.set()
        return False

    monkeypatch.setattr(Lease, "beat", beat)
    with held(Lease.acquire(objects, "run/1", 0.05)):
        assert done.wait(30)


def test_a_killed_holder_of_this_machine_is_not_waited_for(objects: ObjectStore) -> None:
    assert ended(process(_hold_and_die, objects, fault="lease.held")) == -signal.SIGKILL
    clock = Clock()
    assert held(acquire(objects, clock)).epoch == 2
    assert clock.now == 0


def test_a_dying_holder_of_another_machine_is_waited_for(objects: ObjectStore) -> None:
    assert ended(process(_hold_and_die, objects, fault="lease.held")) == -signal.SIGKILL
    body = json.loads(objects.get("leases/run/1/1.own"))
    body["owner"] = f"elsewhere:{body['owner'].split(':', 1)[1]}"
    objects.put("leases/run/1/1.own", json.dumps(body).encode())
    clock = Clock()
    assert held(acquire(objects, clock)).epoch == 2
    assert clock.now > 0.4


def test_bad_times_are_refused(objects: ObjectStore) -> None:
    with pytest.raises(SpecError, match="ttl_seconds=0"):
        Lease.acquire(objects, "run/1", 0)


def _hold_and_die(objects: ObjectStore) -> None:
    lease = Lease.acquire(objects, "run/1", 0.4)
    assert lease is not None
    lease.beat()
    fault("lease.held")
    time.sleep(60)
