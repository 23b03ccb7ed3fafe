"""How often files are opened, by any process, as the kernel tells it (Linux, inotify)."""

from __future__ import annotations

import ctypes
import os
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

IN_OPEN = 0x20
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of a name that follows


class OpenedFiles:
    """As a context manager: counts the opens of the given files."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Nothing is watched yet."""
        self._files = list(files)
        self._watched: dict[int, Path] = {}

    def __enter__(self) -> OpenedFiles:
        """Start to watch."""
        libc = ctypes.CDLL(None, use_errno=True)
        self._handle = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._handle < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        for path in self._files:
            watch = libc.inotify_add_watch(self._handle, os.fsencode(path), IN_OPEN)
            if watch < 0:
                raise OSError(ctypes.get_errno(), "inotify_add_watch", str(path))
            self._watched[watch] = path
        return self

    def __exit__(self, *error: object) -> None:
        """Stop."""
        os.close(self._handle)

    def take(self) -> Counter[Path]:
        """Opens since the last call."""
        found: Counter[Path] = Counter()
        while True:
            try:
                body = os.read(self._handle, 1 << 16)
            except BlockingIOError:
                return found
            at = 0
            while at < len(body):
                watch, mask, _, length = _EVENT.unpack_from(body, at)
                at += _EVENT.size + length
                if mask & IN_OPEN:
                    found[self._watched[watch]] += 1
