"""Says what to install where numba is missing."""

from __future__ import annotations

import importlib.util

from headrace.errors import MissingDependency


def require_numba(place: str) -> None:
    """Raise MissingDependency unless numba can be imported."""
    if importlib.util.find_spec("numba") is None:
        raise MissingDependency(
            place, "", "needs the package numba, which is not installed", 'run: pip install "headrace[pipelines]"'
        )
