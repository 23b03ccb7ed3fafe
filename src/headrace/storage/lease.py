"""A lease says who works on something now.  It saves doubled work and fences nothing: correctness never rests on it.

1. `leases/<name>/<epoch>.own` is create-only; whoever created the highest epoch holds the lease.
2. The holder overwrites `<epoch>.hb` while it lives, and creates `<epoch>.rel` when it is done.
3. Another may take epoch + 1 once the highest epoch is released, or once its heartbeat has not changed for the
   holder's time to live on the observer's own monotonic clock.  No two machines' clocks are ever compared.
4. A holder whose process is gone from this very machine need not be waited for.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from types import TracebackType

from headrace.errors import SpecError, StorageUnavailable
from headrace.storage.objects import ObjectStore

_BEATS_PER_TTL = 3
_POLLS_PER_TTL = 20


class Lease:
    """A lease that this process took; as a context manager it beats by itself and releases at the end."""

    def __init__(self, objects: ObjectStore, name: str, epoch: int, ttl_seconds: float) -> None:
        """Made by `acquire`."""
        self.objects, self.name, self.epoch, self.ttl_seconds = objects, name, epoch, ttl_seconds
        self._beats = 0
        self._lost = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @classmethod
    def acquire(
        cls,
        objects: ObjectStore,
        name: str,
        ttl_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Lease | None:
        """The lease, or None where somebody alive has it.

        Answers at once where it is free.  Where it is held, watches the holder until its next heartbeat, at most for
        the holder's time to live.
        """
        if ttl_seconds <= 0:
            raise SpecError(f"lease {name}", f"ttl_seconds={ttl_seconds}", "must be positive", "use 30")
        epoch = _highest(objects, name)
        if epoch and not _is_over(objects, name, epoch, clock, sleep):
            return None
        owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4()}"
        body = json.dumps({"owner": owner, "ttl_seconds": ttl_seconds}).encode()
        key = _key(name, epoch + 1, "own")
        # A lost reply answers False to the true creator, so the body decides.
        if not objects.put_once(key, body) and objects.get_or_none(key) != body:
            return None
        return cls(objects, name, epoch + 1, ttl_seconds)

    @property
    def is_lost(self) -> bool:
        """True once another has taken the lease over."""
        return self._lost.is_set()

    def beat(self) -> bool:
        """Show that the holder lives; False where another has taken the lease over."""
        if _highest(self.objects, self.name) > self.epoch:
            self._lost.set()
            return False
        self._beats += 1
        self.objects.put(_key(self.name, self.epoch, "hb"), str(self._beats).encode())
        return True

    def release(self) -> None:
        """Give the lease back; others need not wait for the time to live."""
        self.objects.put_once(_key(self.name, self.epoch, "rel"), b"")

    def __enter__(self) -> Lease:
        """Beat in a thread from now on."""
        self._thread = threading.Thread(target=self._beat_on, name=f"lease {self.name}", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop beating and release."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.release()

    def _beat_on(self) -> None:
        while True:
            try:
                if not self.beat():
                    return
            except StorageUnavailable:
                pass  # the next beat may get through; if none does, others rightly take over
            if self._stop.wait(self.ttl_seconds / _BEATS_PER_TTL):
                return


def _is_over(
    objects: ObjectStore, name: str, epoch: int, clock: Callable[[], float], sleep: Callable[[float], None]
) -> bool:
    """Watch the holder of this epoch: True once it released or stopped beating, False where it lives or changed."""
    held = json.loads(objects.get(_key(name, epoch, "own")))
    ttl_seconds = float(held["ttl_seconds"])
    if _is_gone(str(held["owner"])):
        return True
    first, since = objects.get_or_none(_key(name, epoch, "hb")), clock()
    while True:
        if objects.size_bytes(_key(name, epoch, "rel")) is not None:
            return True
        if objects.get_or_none(_key(name, epoch, "hb")) != first or _highest(objects, name) != epoch:
            return False
        if clock() - since > ttl_seconds:
            return True
        sleep(ttl_seconds / _POLLS_PER_TTL)


def _is_gone(owner: str) -> bool:
    """True where the owner ran on this machine and its process has ended."""
    host, pid, _ = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _highest(objects: ObjectStore, name: str) -> int:
    files = [info.key.removeprefix(f"leases/{name}/") for info in objects.list(f"leases/{name}")]
    epochs = [file.removesuffix(".own") for file in files if file.endswith(".own")]
    return max((int(epoch) for epoch in epochs if epoch.isdigit()), default=0)  # `a` lists the leases of `a/b` too


def _key(name: str, epoch: int, kind: str) -> str:
    return f"leases/{name}/{epoch}.{kind}"
