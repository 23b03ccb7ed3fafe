"""One thread that runs an iterator ahead of its reader, within a bound.

1. What the reader has not taken has not happened: the thread knows nothing of positions or states.
2. The thread holds the shared part only, never the `Prefetch`: when the reader drops that, it is collected, and its
   finaliser tells the thread to stop.
3. Whatever ends the iterator, an error too, comes out in the reader's thread, after what was ready before it.
4. `close` waits for the thread, the finaliser does not: it may run anywhere, in that very thread too, while the lock
   is held (hence the re-entrant lock of a plain `Condition`).
5. The thread is a daemon: an interpreter that exits with a loop half done does not wait for a reader that never comes.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Shared(Generic[T]):
    """What the thread and the reader both touch, under one lock."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.changed = threading.Condition()
        self.ready: deque[T] = deque()
        self.error: BaseException | None = None
        self.is_done = self.is_stopped = False

    def put(self, one: T) -> bool:
        """Wait for room; False where nobody wants more."""
        with self.changed:
            while len(self.ready) >= self.limit and not self.is_stopped:
                self.changed.wait()
            if self.is_stopped:
                return False
            self.ready.append(one)
            self.changed.notify_all()
            return True

    def finish(self, error: BaseException | None) -> None:
        with self.changed:
            self.error, self.is_done = error, True
            self.changed.notify_all()

    def stop(self) -> None:
        with self.changed:
            self.is_stopped = True
            self.ready.clear()
            self.changed.notify_all()


class Prefetch(Generic[T]):
    """Iterates over `source`, which runs up to `limit` ahead in a thread of its own."""

    def __init__(self, source: Generator[T, Any, Any], limit: int) -> None:
        """Start at once."""
        self._shared: _Shared[T] = _Shared(limit)
        self._thread = threading.Thread(target=_fill, args=(self._shared, source), name="headrace-batches", daemon=True)
        self._finalizer = weakref.finalize(self, self._shared.stop)
        self._thread.start()

    def __iter__(self) -> Prefetch[T]:
        return self

    def __next__(self) -> T:
        shared = self._shared
        with shared.changed:
            while not (shared.ready or shared.is_done or shared.is_stopped):
                shared.changed.wait()
            if shared.ready:
                one = shared.ready.popleft()
                shared.changed.notify_all()
                return one
            error, shared.error = shared.error, None
        if error is not None:
            raise error
        raise StopIteration

    def close(self) -> None:
        """Stop and wait for the thread, which finishes the read that it is in."""
        self._finalizer()
        self._thread.join()


def _fill(shared: _Shared[T], source: Generator[T, Any, Any]) -> None:
    error = None
    try:
        for one in source:
            if not shared.put(one):
                break
        source.close()
    except BaseException as caught:  # noqa: BLE001  (rule 3: it is raised in the reader's thread)
        error = caught
    shared.finish(error)
