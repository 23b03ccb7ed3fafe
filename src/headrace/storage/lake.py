"""The lake: one root under which every dataset and every small object lives.

`<root>/<name>.lance` is a Lance dataset that any Lance reader opens; `<root>/_headrace/` holds the small objects.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from headrace.errors import SpecError
from headrace.storage.objects import ObjectStore
from headrace.storage.reference import SYSTEM, check_name, is_name
from headrace.storage.settings import Settings, is_remote, storage_options

_default: ContextVar[Lake | None] = ContextVar("headrace_default_lake", default=None)

_SCHEMES = ("s3", "gs", "az")
_SUFFIX = ".lance"


@dataclass(frozen=True)
class Lake:
    """A root, and nothing else: it pickles and prints without credentials, which are looked up where needed."""

    uri: str

    @classmethod
    def resolve(cls, uri: str | None = None) -> Lake:
        """The lake of this argument, else of HEADRACE_LAKE, else ./lake.  Touches nothing."""
        if uri is None and (inside := _default.get()) is not None:
            return inside
        given = Settings.read().lake if uri is None else uri
        if not given.strip():
            raise SpecError("lake", repr(given), "must be a folder or an object store's URI", "write ./lake")
        scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", given)
        if scheme is None:
            return cls(os.path.abspath(os.path.expanduser(given)))
        if scheme[1] == "file":
            return cls(os.path.abspath(unquote(urlsplit(given).path)))
        if scheme[1] not in _SCHEMES:
            raise SpecError("lake", f"{scheme[1]}://", "must be a folder or s3://, gs://, az://", "write ./lake")
        if "@" in given or "?" in given:  # told without the value: it would be a secret in a log
            rule = "a lake's URI carries no credentials and no query"
            raise SpecError("lake", f"{scheme[1]}://…", rule, "put them into HEADRACE_STORAGE_OPTIONS")
        return cls(given.rstrip("/"))

    @contextmanager
    def as_default(self) -> Iterator[None]:
        """Inside, whoever resolves no lake by name gets this one: a reader of datasets is planned in its run's lake."""
        token = _default.set(self)
        try:
            yield
        finally:
            _default.reset(token)

    def dataset_uri(self, name: str) -> str:
        """Where the dataset is or would be; SpecError for what is no name."""
        if not (name.startswith(SYSTEM) and name[1:].isalpha()):
            check_name(name)
        return f"{self.uri}/{name}{_SUFFIX}"

    def exists(self) -> bool:
        """True where the root is there."""
        if not is_remote(self.uri):
            return os.path.isdir(self.uri)
        return bool(ObjectStore(self.uri).folders())

    def names(self) -> list[str]:
        """Names of the datasets, sorted; Headrace's own are left out.  A missing lake has none."""
        found: list[str] = []
        root, open_folders = ObjectStore(self.uri), [""]
        while open_folders:
            for key in root.folders(open_folders.pop()):
                if not is_name(key.removesuffix(_SUFFIX)):  # our own, or something that is not ours at all
                    continue
                if not key.endswith(_SUFFIX):
                    open_folders.append(key)
                elif f"{key}/_versions" in root.folders(key):  # an interrupted create leaves a folder without versions
                    found.append(key.removesuffix(_SUFFIX))
        return sorted(found)

    @property
    def objects(self) -> ObjectStore:
        """The small objects of this lake."""
        return ObjectStore(f"{self.uri}/_headrace")

    def storage_options(self) -> dict[str, str] | None:
        """Plain options for whoever opens a dataset now; do not keep, print or pickle the answer."""
        return storage_options(self.uri)
