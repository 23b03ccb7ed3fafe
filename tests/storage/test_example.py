from __future__ import annotations

from headrace.storage.example import example_id
from headrace.storage.lake import Lake
from tests.storage.support import NAME
from tests.storage.test_why import broken, dropped, publish_run


def test_a_dropped_row_of_the_newest_run_comes_first(lake: Lake) -> None:
    publish_run(lake, "r1", ["a"], [dropped("b", "r1")], [broken("c", "r1")])
    assert example_id(lake, NAME, 1) is None  # nothing was published yet
    assert example_id(lake, NAME, 2) == ("dropped", "b")
    publish_run(lake, "r2", ["d"], [], [broken("e", "r2")])
    assert example_id(lake, NAME, 3) == ("quarantined", "e")
    publish_run(lake, "r3", ["f"], [], [])
    assert example_id(lake, NAME, 4) == ("kept", "f")
    assert example_id(lake, NAME, 2) == ("dropped", "b")  # a version's answer stays
