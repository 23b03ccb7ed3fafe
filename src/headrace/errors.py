"""One error tree.  Each error says *place: got value; rule; what to do*.

Every class takes the same four texts, so that a worker's exception pickles back to the driver unchanged,
derives also from the builtin that callers expect, says whether trying again can help (`retryable`), and
carries the exit code of the command line.

>>> str(SpecError("steps[1].min_words", "'ten'", "must be an integer >= 0", "write min_words: 10"))
"steps[1].min_words: got 'ten'; must be an integer >= 0; write min_words: 10"
"""

from __future__ import annotations

from typing import ClassVar


class HeadraceError(Exception):
    """Root of the tree.  Empty parts are left out of the text."""

    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1

    def __init__(self, place: str, got: str = "", rule: str = "", fix: str = "") -> None:
        """`place` names file, step, dataset or row; `got` the value; `rule` what holds; `fix` what to do."""
        super().__init__(place, got, rule, fix)
        self.place, self.got, self.rule, self.fix = place, got, rule, fix

    def __str__(self) -> str:
        """Build the text late, so that pickling carries the raw parts."""
        rest = [f"got {self.got}" if self.got else "", self.rule, self.fix]
        told = "; ".join(part for part in rest if part)
        return f"{self.place}: {told}" if told else self.place

    def __reduce__(self) -> tuple[type[HeadraceError], tuple[str, str, str, str]]:
        """Rebuild from the four parts; OSError would drop some of them by itself."""
        return type(self), (self.place, self.got, self.rule, self.fix)


class SpecError(HeadraceError, ValueError):
    """A pipeline file, an operator or a command's input is wrong."""

    exit_code = 2
    problems: tuple[str, ...] = ()
    """One text each where a file has several; `place` lists them all, and a pickle carries only that."""


class DataError(HeadraceError, ValueError):
    """Rows or a schema break a contract."""

    exit_code = 3


class InputChanged(DataError):
    """An input file is not the one that was planned."""


class DatasetNotFound(HeadraceError, LookupError):
    """No such dataset, version, tag or run."""

    exit_code = 4


class GateFailed(HeadraceError, ValueError):
    """A gate refused the result; nothing was published."""

    exit_code = 5


class CommitConflict(HeadraceError, RuntimeError):
    """Another writer won; read again and retry."""

    retryable = True
    exit_code = 6


class StorageUnavailable(HeadraceError, OSError):
    """The object store or the network failed."""

    retryable = True
    exit_code = 6


class ModelUnavailable(HeadraceError, RuntimeError):
    """A model endpoint timed out or limits its rate."""

    retryable = True
    exit_code = 6


class ModelRefused(HeadraceError, RuntimeError):
    """A model endpoint refused the request itself."""

    exit_code = 3


class MissingDependency(HeadraceError, ImportError):
    """An optional package is not installed; names the extra that brings it."""

    exit_code = 2


class InternalError(HeadraceError, RuntimeError):
    """Our own bug; please report it."""

    exit_code = 70
