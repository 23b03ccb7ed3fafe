"""A module is about 120 lines; 300 asks for a split, 500 refuses."""

from __future__ import annotations

from pathlib import Path

from tests.contracts._repository import ROOT, modules

SOFT_CAP = 300
HARD_CAP = 500


def _longer_than(cap: int, paths: list[Path]) -> list[str]:
    counted = [(len(path.read_text("utf-8").splitlines()), path) for path in paths]
    return [f"{path.relative_to(ROOT)}: {lines} lines" for lines, path in counted if lines > cap]


def test_no_module_passes_the_hard_cap() -> None:
    paths = list(modules("src", "tests", "examples", "benchmarks"))
    for told in _longer_than(SOFT_CAP, paths):
        print(f"above the soft cap of {SOFT_CAP}: {told}")  # noqa: T201  (shown by -rP)
    assert _longer_than(HARD_CAP, paths) == []


def test_a_long_module_is_seen() -> None:
    path = Path(__file__)
    assert _longer_than(5, [path]) == [f"{path.relative_to(ROOT)}: {len(path.read_text('utf-8').splitlines())} lines"]
