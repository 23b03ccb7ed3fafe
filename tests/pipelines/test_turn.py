"""Whose turn it is: one waits while another lives, and is told so once."""

from __future__ import annotations

import threading

from headrace.pipelines.progress import Silent
from headrace.pipelines.turn import take_turn
from headrace.storage.lake import Lake


class Heard(Silent):
    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.warned = threading.Event()

    def warn(self, text: str) -> None:
        self.warnings.append(text)
        self.warned.set()


def test_the_second_waits_for_the_first_and_says_so(lake: Lake) -> None:
    order: list[str] = []
    heard = Heard()

    def second() -> None:
        with take_turn(lake, "r1", heard):
            order.append("second")

    with take_turn(lake, "r1", Silent()):
        thread = threading.Thread(target=second)
        thread.start()
        assert heard.warned.wait(60)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]
    assert heard.warnings == ["another process works on run r1; waiting for it"]


def test_other_runs_do_not_wait(lake: Lake) -> None:
    heard = Heard()
    with take_turn(lake, "r1", heard), take_turn(lake, "r2", heard):
        pass
    with take_turn(lake, "r1", heard):  # and a turn that is over is free at once
        pass
    assert heard.warnings == []


def test_a_turn_ends_with_an_error_too(lake: Lake) -> None:
    heard = Heard()
    try:
        with take_turn(lake, "r1", heard):
            raise ValueError
    except ValueError:
        pass
    with take_turn(lake, "r1", heard):
        pass
    assert heard.warnings == []
