"""Errors of Lance and of the object store, told in our own words.

Lance raises ValueError or OSError for nearly everything and says the rest in the text; obstore has its own tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from obstore.exceptions import BaseError

from headrace.errors import HeadraceError, StorageUnavailable

FIX = "check that the lake is reachable and that its credentials and permissions are right, then try again"


@contextmanager
def storage_calls(place: str) -> Iterator[None]:
    """Turn what the libraries raise inside into StorageUnavailable at `place`; our own errors pass."""
    try:
        yield
    except HeadraceError:
        raise
    except (OSError, BaseError) as error:
        raise StorageUnavailable(place, first_line(error), "the storage must answer", FIX) from error


def first_line(error: BaseException) -> str:
    """The part of a library's message that a person can use: without its debug dump and source lines."""
    text = str(error).split("\n", 1)[0]
    return text.split(", /home/", 1)[0].split(", rust/", 1)[0] or type(error).__name__


def is_missing(error: BaseException) -> bool:
    """True where Lance says that a dataset, version or tag is not there."""
    text = str(error)
    return isinstance(error, ValueError | OSError) and ("was not found" in text or "does not exist" in text)
