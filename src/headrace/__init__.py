"""Headrace: training-data pipelines over versioned Lance datasets.

`import headrace` is light: each name below brings its own module when it is first used.

>>> import headrace
>>> sorted(headrace.__all__)[:3]
['Dataset', 'Lake', 'Pipeline']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace import errors
    from headrace.pipelines.load import load_pipeline
    from headrace.pipelines.run import RunResult, resume, run
    from headrace.pipelines.spec import Pipeline
    from headrace.storage.dataset import Dataset
    from headrace.storage.lake import Lake

    __version__: str

__all__ = [
    "Dataset",
    "Lake",
    "Pipeline",
    "RunResult",
    "__version__",
    "datasets",
    "errors",
    "load_pipeline",
    "open",
    "resume",
    "run",
]

# Name -> module that has it; `errors` is a module itself.
_HOMES = {
    "Dataset": "headrace.storage.dataset",
    "Lake": "headrace.storage.lake",
    "Pipeline": "headrace.pipelines.spec",
    "RunResult": "headrace.pipelines.run",
    "load_pipeline": "headrace.pipelines.load",
    "resume": "headrace.pipelines.run",
    "run": "headrace.pipelines.run",
}


def open(ref: str, lake: Lake | str | None = None) -> Dataset:
    """One version of a dataset: `name`, `name@12` or `name@prod`.

    lake: URI or Lake, else HEADRACE_LAKE, else ./lake.  Raises DatasetNotFound, which says what there is instead.
    """
    from headrace.storage.dataset import Dataset

    return Dataset.open(ref, lake)


def datasets(lake: Lake | str | None = None) -> list[str]:
    """Names of the lake's datasets, sorted, without their rejects and quarantine; a missing lake has none."""
    from headrace.storage.lake import Lake

    place = lake if isinstance(lake, Lake) else Lake.resolve(lake)
    found = place.names()
    return [name for name in found if not _is_companion(name, found)]


def _is_companion(name: str, found: list[str]) -> bool:
    owner, _, suffix = name.rpartition(".")
    return suffix in ("rejects", "quarantine") and owner in found


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name == "errors":
        value = importlib.import_module("headrace.errors")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("headrace")
    else:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """What is there and what would be."""
    return sorted({*globals(), *__all__})
