"""Which files of a folder are opened, told by the kernel (inotify) and thus from outside the code under test."""

from __future__ import annotations

import ctypes
import os
import struct
from collections import Counter
from pathlib import Path
from types import TracebackType

_IN_OPEN = 0x20
_IN_ISDIR = 0x40000000
_EVENT = struct.Struct("iIII")


class Opens:
    """As a context manager: counts how often each file directly in `folder` is opened, by any process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._handle = -1

    def __enter__(self) -> Opens:
        self._handle = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._handle < 0 or self._libc.inotify_add_watch(self._handle, os.fsencode(self._folder), _IN_OPEN) < 0:
            raise OSError(ctypes.get_errno(), "inotify", str(self._folder))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._handle)

    def take(self) -> Counter[str]:
        """Name -> number of times it was opened since the last call."""
        found: Counter[str] = Counter()
        while True:
            try:
                body = os.read(self._handle, 1 << 16)
            except BlockingIOError:
                return found
            at = 0
            while at < len(body):
                _, mask, _, length = _EVENT.unpack_from(body, at)
                name = body[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
                if name and not mask & _IN_ISDIR:
                    found[os.fsdecode(name)] += 1
                at += _EVENT.size + length
