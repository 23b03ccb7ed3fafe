"""The laws of the error tree: workers pickle errors, people read them, scripts look at exit codes."""

from __future__ import annotations

import builtins
import inspect
import pickle

import pytest

from headrace import errors
from headrace.errors import HeadraceError

ALL = [found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, HeadraceError)]
CONCRETE = [cls for cls in ALL if cls is not HeadraceError]
PARTS = ("steps[1]", "'ten'", "must be an integer", "write 10")


def test_there_are_errors() -> None:
    assert len(CONCRETE) > 8


@pytest.mark.parametrize("cls", ALL)
def test_it_survives_pickling(cls: type[HeadraceError]) -> None:
    for parts in (PARTS, ("place",), ("place", "", "rule")):
        error = cls(*parts)
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is cls
        assert (copy.place, copy.got, copy.rule, copy.fix) == (error.place, error.got, error.rule, error.fix)
        assert str(copy) == str(error)
        assert copy.args == error.args


@pytest.mark.parametrize("cls", ALL)
def test_the_message_has_its_form(cls: type[HeadraceError]) -> None:
    assert str(cls(*PARTS)) == "steps[1]: got 'ten'; must be an integer; write 10"
    assert str(cls("place", fix="do this")) == "place: do this"
    assert str(cls("place")) == "place"


@pytest.mark.parametrize("cls", CONCRETE)
def test_callers_may_expect_the_builtin(cls: type[HeadraceError]) -> None:
    bases = [base for base in cls.__mro__ if base.__module__ == builtins.__name__]
    assert bases[0] not in (Exception, BaseException, object)
    assert issubclass(bases[0], Exception)


@pytest.mark.parametrize("cls", ALL)
def test_it_says_whether_to_retry_and_how_to_exit(cls: type[HeadraceError]) -> None:
    assert isinstance(cls.retryable, bool)
    assert 1 <= cls.exit_code <= 125
    assert (cls.exit_code == 6) == cls.retryable, "6 tells a script to try again"


@pytest.mark.parametrize("cls", ALL)
def test_it_is_told_and_takes_the_same_four_texts(cls: type[HeadraceError]) -> None:
    assert inspect.getdoc(cls)
    assert list(inspect.signature(cls).parameters) == ["place", "got", "rule", "fix"]
    assert "__init__" not in vars(cls) or cls is HeadraceError
