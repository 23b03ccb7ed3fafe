"""Small objects beside the datasets: unit records, plans, channel moves, leases.

Everything that must happen once rests on `put_once`: the first writer of a key wins, on a folder (link if absent)
and on an object store (PUT with If-None-Match) alike.
"""

from __future__ import annotations

import builtins
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import LocalStore, from_url

from headrace.errors import SpecError
from headrace.storage.foreign import storage_calls
from headrace.storage.settings import is_remote, storage_options

_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@=+-]*")
_CLIENT = frozenset({"allow_http", "allow_invalid_certificates", "connect_timeout", "timeout", "proxy_url"})
_LANCE_ONLY = frozenset({"client_max_retries", "client_retry_timeout", "download_retry_count"})


class ObjectInfo(NamedTuple):
    """One object of a listing."""

    key: str
    size_bytes: int


@dataclass(frozen=True)
class ObjectStore:
    """Objects under one root.  Holds only the root, so that a pickle carries no credentials."""

    root: str

    def put_once(self, key: str, body: bytes) -> bool:
        """True where this call created the object; False, and nothing changed, where it was there already.

        A lost reply may answer False to the true creator: who must know compares the stored body with its own.
        """
        with self._place(key):
            try:
                obstore.put(self._writable(), key, body, mode="create")
            except AlreadyExistsError:
                return False
            return True

    def put(self, key: str, body: bytes) -> None:
        """Create or replace; a reader sees the old body or the new one, never a part."""
        with self._place(key):
            obstore.put(self._writable(), key, body)

    def get(self, key: str) -> bytes:
        """The body; KeyError where there is none."""
        body = self.get_or_none(key)
        if body is None:
            raise KeyError(key)
        return body

    def get_or_none(self, key: str) -> bytes | None:
        """The body, or None where there is none."""
        with self._place(key):
            if (store := self._readable()) is None:
                return None
            try:
                return bytes(obstore.get(store, key).bytes())
            except FileNotFoundError:
                return None

    def list(self, prefix: str = "") -> builtins.list[ObjectInfo]:
        """Every object below the folder `prefix`, however deep, sorted by key."""
        prefix = prefix.rstrip("/")
        with self._place(prefix or None):
            if (store := self._readable()) is None:
                return []
            found = [meta for chunk in obstore.list(store, prefix or None) for meta in chunk]
        return sorted(ObjectInfo(meta["path"], meta["size"]) for meta in found)

    def folders(self, prefix: str = "") -> builtins.list[str]:
        """Keys of the folders directly below `prefix`, sorted."""
        with self._place(prefix or None):
            if (store := self._readable()) is None:
                return []
            return sorted(obstore.list_with_delimiter(store, prefix or None)["common_prefixes"])

    def size_bytes(self, key: str) -> int | None:
        """Size of the object, or None where there is none."""
        with self._place(key):
            if (store := self._readable()) is None:
                return None
            try:
                return int(obstore.head(store, key)["size"])
            except FileNotFoundError:
                return None

    def delete(self, key: str) -> None:
        """Remove the object; nothing happens where there is none."""
        with self._place(key):
            if (store := self._readable()) is None:
                return
            try:
                obstore.delete(store, key)
            except FileNotFoundError:
                return

    @contextmanager
    def _place(self, key: str | None) -> Iterator[None]:
        for segment in [] if key is None else key.split("/"):
            if not _SEGMENT.fullmatch(segment):
                rule = "an object key is made of slash-separated segments of letters, digits and . _ - @ = +"
                raise SpecError("object key", repr(key), rule, "use another key")
        with storage_calls(self.root if key is None else f"{self.root}/{key}"):
            yield

    def _readable(self) -> Any:
        """The store for reading; None where a local root is not there, since reads create nothing."""
        if is_remote(self.root):
            return _remote(self.root, tuple(sorted((storage_options(self.root) or {}).items())))
        return LocalStore(self.root) if os.path.isdir(self.root) else None

    def _writable(self) -> Any:
        return self._readable() or LocalStore(self.root, mkdir=True)


@lru_cache(maxsize=16)
def _remote(root: str, options: tuple[tuple[str, str], ...]) -> Any:
    """A connected store, kept for the process; Lance's names of the options are obstore's, except its own knobs."""
    config = {key: value for key, value in options if key not in _CLIENT | _LANCE_ONLY | {"request_timeout"}}
    client = {key: value for key, value in options if key in _CLIENT}
    if timeout := dict(options).get("request_timeout"):
        client["timeout"] = timeout
    for key in ("connect_timeout", "timeout"):
        if client.get(key, "").isdigit():  # Lance reads plain seconds here, obstore wants the unit
            client[key] += "s"
    connect: Any = from_url  # its types list each option by name; ours come from the environment
    return connect(root, config=config, client_options=client)
