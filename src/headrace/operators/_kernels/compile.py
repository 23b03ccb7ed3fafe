"""How every kernel is compiled: to the disk cache, without the interpreter lock, typed for the checker.

Importing this module needs numba, so an operator calls `require_numba` in its `build()` and imports kernels after it.

The cache lies beside the sources, in `NUMBA_CACHE_DIR`, or in the user's cache folder, whichever can be written
first; where none can, each process compiles for itself.  numba looks at the file of the entry point only, so a
change in another file of this folder would leave stale code; the stamp makes it part of the cache's key.

Rule: call a kernel with arrays of one kind only (`TextBuffers` and tables made here).  Then it has one signature,
and two processes that compile it at the same time write equal files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import CellType, FunctionType
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def _folder_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


_STAMP = _folder_digest()


def kernel(function: F) -> F:
    """An entry point: compiled on first call, then loaded from the cache."""
    stamped = _stamped(function)
    try:
        return cast("F", njit(cache=True, nogil=True)(stamped))
    except RuntimeError:  # numba found no folder it may write to
        return cast("F", njit(nogil=True)(stamped))


def inner(function: F) -> F:
    """A function that kernels call; it is compiled into each of them."""
    return cast("F", njit(nogil=True)(function))


def inlined(function: F) -> F:
    """A few operations that must not cost a call, merged into the caller before types are known."""
    return cast("F", njit(inline="always")(function))


def _stamped(function: Callable[..., Any]) -> FunctionType:
    """The same function with one more closure variable, which it never reads: numba's key covers closures."""
    assert isinstance(function, FunctionType)
    code = function.__code__
    return FunctionType(
        code.replace(co_freevars=(*code.co_freevars, "_stamp")),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        (*(function.__closure__ or ()), CellType(_STAMP)),
    )
