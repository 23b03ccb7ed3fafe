from __future__ import annotations

import signal
import time

import pytest

from headrace.errors import SpecError
from headrace.storage.faults import VARIABLE, InjectedFault, fault
from tests.storage.support import ended, process


def test_nothing_happens_without_the_variable() -> None:
    fault("test.unset")


def test_kill_is_the_default_action() -> None:
    assert ended(process(fault, "test.kill", fault="test.kill")) == -signal.SIGKILL


def test_only_the_named_point_and_pass_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "test.nth:2=raise")
    fault("test.other")
    fault("test.nth")
    with pytest.raises(InjectedFault, match=r"test\.nth"):
        fault("test.nth")
    fault("test.nth")


def test_without_a_number_every_pass_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "test.every=raise")
    for _ in range(2):
        with pytest.raises(InjectedFault):
            fault("test.every")


def test_pause_sleeps_as_long_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setenv(VARIABLE, "test.pause=pause 0.25")
    fault("test.pause")
    assert slept == [0.25]


@pytest.mark.parametrize("text", ["", "point=die", "point:0", "point:x=kill", "point=pause", "point=pause soon"])
def test_a_text_that_means_nothing_is_told(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(SpecError, match=VARIABLE):
        fault("point")
