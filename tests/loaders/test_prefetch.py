from __future__ import annotations

import gc
import signal
import threading
import weakref
from collections.abc import Generator

import pytest

from headrace.loaders.prefetch import Prefetch
from tests.loaders.conftest import reading_threads, wait_for_threads


def numbers(count: int, seen: list[int] | None = None) -> Generator[int, None, None]:
    for number in range(count):
        if seen is not None:
            seen.append(number)
        yield number


@pytest.mark.parametrize("limit", [1, 3, 1_000])
def test_gives_everything_in_order_and_ends(limit: int) -> None:
    ahead = Prefetch(numbers(500), limit)
    assert list(ahead) == list(range(500))
    assert list(ahead) == []
    ahead.close()


def test_runs_no_further_ahead_than_its_limit() -> None:
    seen: list[int] = []
    ahead = Prefetch(numbers(10**9, seen), 3)
    for taken in range(1, 100):
        assert next(ahead) == taken - 1
        assert len(seen) <= taken + 3 + 1  # one more is in its hand
    ahead.close()
    assert reading_threads() == []


def test_an_error_comes_out_after_what_was_ready() -> None:
    def failing() -> Generator[int, None, None]:
        yield 1
        yield 2
        raise ZeroDivisionError("in the thread")

    ahead = Prefetch(failing(), 5)
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(ZeroDivisionError, match="in the thread"):
        next(ahead)
    with pytest.raises(StopIteration):
        next(ahead)


def test_close_closes_the_source() -> None:
    closed = threading.Event()

    def source() -> Generator[int, None, None]:
        try:
            yield from numbers(10**9)
        finally:
            closed.set()

    ahead = Prefetch(source(), 2)
    next(ahead)
    ahead.close()
    assert closed.is_set()
    ahead.close()  # a second time is fine
    with pytest.raises(StopIteration):
        next(ahead)


def test_dropping_it_ends_the_thread() -> None:
    ahead = Prefetch(numbers(10**9), 2)
    next(ahead)
    assert len(reading_threads()) == 1
    gone = weakref.ref(ahead)
    del ahead
    assert gone() is None  # without the collector: nothing points back at it
    wait_for_threads()


def test_collection_in_its_own_thread_does_not_lock_up() -> None:
    cycle: list[object] = []
    may_collect = threading.Event()

    def source() -> Generator[int, None, None]:
        may_collect.wait(10)
        gc.collect()
        yield from numbers(10**9)

    ahead = Prefetch(source(), 1)
    cycle.extend([ahead, cycle])  # reachable only from itself, once the names are gone
    del ahead, cycle
    may_collect.set()
    wait_for_threads()


def test_the_finaliser_may_run_where_its_own_thread_holds_the_lock() -> None:
    """The collector runs where it likes, inside the locked parts too."""
    ahead = Prefetch(numbers(10**9), 1)
    is_stopped = threading.Event()

    def collect() -> None:
        with ahead._shared.changed:
            ahead._finalizer()
        is_stopped.set()

    threading.Thread(target=collect, daemon=True).start()
    assert is_stopped.wait(10)
    ahead.close()


def test_ctrl_c_reaches_a_reader_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end, is_waiting = threading.Event(), threading.Event()

    def source() -> Generator[int, None, None]:
        may_end.wait(30)
        yield 1

    ahead = Prefetch(source(), 1)
    changed = ahead._shared.changed
    true_wait = changed.wait

    def wait(timeout: float | None = None) -> bool:
        is_waiting.set()
        return true_wait(timeout)

    monkeypatch.setattr(changed, "wait", wait)
    main = threading.get_ident()

    def interrupt() -> None:
        is_waiting.wait(30)
        signal.pthread_kill(main, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        killer = threading.Thread(target=interrupt)
        killer.start()
        with pytest.raises(KeyboardInterrupt):
            next(ahead)
        killer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    may_end.set()
    assert next(ahead) == 1
    ahead.close()
