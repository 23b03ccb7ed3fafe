"""What kills its worker every time ends in quarantine after bounded attempts; everything else is published."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipelines.corpus import DEADLY, REFUSED, Doc, Expected, expect, write_docs
from tests.pipelines.driving import Ended, Site, check_published, steps

DEATHS = 3
"""Attempts at a unit before it is done in children (records.MAX_ATTEMPTS)."""

OPERATOR = "tests.pipelines.operators:Deadly"


def _poisoned(docs: list[Doc], *places: int) -> list[Doc]:
    """The text of some readable lines gets the deadly word."""
    good = [n for n, doc in enumerate(docs) if doc.id is not None and len(doc.text) > 40]
    chosen = {good[place] for place in places}
    return [Doc(d.file, d.id, f"{d.text} {DEADLY} {n}" if n in chosen else d.text) for n, d in enumerate(docs)]


def _expected(docs: list[Doc], step: int) -> Expected:
    """As if the deadly rows had never come past that step."""
    lost = [doc for doc in docs if DEADLY in doc.text and doc.id is not None]
    rest = expect([doc for doc in docs if doc not in lost], between=step == 3)
    return Expected(rest.kept, rest.rejects, sorted(rest.quarantine + [(doc.file, step) for doc in lost]))


def _run_until_done(site: Site, most: int, **given: Any) -> tuple[Ended, int]:
    for deaths in range(most + 1):
        ended = site.run(**given)
        if not ended.was_killed:
            return ended, deaths
    raise AssertionError(f"killed {most + 1} times")


@pytest.mark.parametrize(
    ("cpus", "places"),
    [(1, (3, 4)), pytest.param(3, (3, 4, 30), marks=pytest.mark.soak)],
    ids=["one unit", "two units"],
)
def test_deadly_rows_in_this_process(site: Site, docs: list[Doc], cpus: int, places: tuple[int, ...]) -> None:
    poisoned = _poisoned(docs, *places)
    assert len({doc.file for doc in poisoned if DEADLY in doc.text}) == len(places) - 1
    write_docs(site.input, poisoned)
    site.write_pipeline(steps({"op": OPERATOR}))
    ended, deaths = _run_until_done(site, 2 * DEATHS, cpus=cpus)
    assert deaths >= DEATHS
    check_published(site, ended, _expected(poisoned, step=3))
    told = [row["error"] for row in site.rows(".quarantine") if row["step"] == 3]
    assert len(told) == len(places)
    assert all("killed" in error and "signal 9" in error for error in told)
    assert {row["op"] for row in site.rows(".quarantine") if row["step"] == 3} == {OPERATOR}
    assert site.verify(ended.run) == []
    assert site.run().status == "already published"


def test_a_deadly_row_behind_the_global_step(site: Site, docs: list[Doc]) -> None:
    poisoned = _poisoned(docs, 20)
    write_docs(site.input, poisoned)
    site.write_pipeline([*steps(), {"op": OPERATOR}])
    ended, deaths = _run_until_done(site, DEATHS)
    assert deaths == DEATHS
    plain = expect(poisoned)
    kept = [row for row in plain.kept if DEADLY not in row[1]]
    lost = [(doc.file, 5) for doc in poisoned if DEADLY in doc.text]
    check_published(site, ended, Expected(kept, plain.rejects, sorted(plain.quarantine + lost)))
    assert site.verify(ended.run) == []


@pytest.mark.soak
def test_a_deadly_row_in_a_stage_of_its_own(site: Site, docs: list[Doc]) -> None:
    poisoned = _poisoned(docs, 10)
    write_docs(site.input, poisoned)
    site.write_pipeline(steps({"op": "tests.pipelines.operators:DeadlySmall"}))
    ended, deaths = _run_until_done(site, DEATHS)
    assert deaths == DEATHS
    check_published(site, ended, _expected(poisoned, step=3))


@pytest.mark.soak
def test_a_unit_full_of_deadly_rows(site: Site, docs: list[Doc]) -> None:
    good = [doc for doc in docs if doc.id is not None and len(doc.text) > 40]
    chosen = [n for n, doc in enumerate(good) if doc.file == docs[0].file and REFUSED not in doc.text]
    assert len(chosen) > 3
    poisoned = _poisoned(docs, *chosen)
    write_docs(site.input, poisoned)
    site.write_pipeline(steps({"op": OPERATOR}))
    ended, _ = _run_until_done(site, DEATHS)
    check_published(site, ended, _expected(poisoned, step=3))


def test_a_reader_that_dies_on_a_file(site: Site, docs: list[Doc]) -> None:
    listed = [{"op": "tests.pipelines.operators:DeadlyReader", "root": "in", "deadly": "part-003.jsonl"}, *steps()[1:]]
    site.write_pipeline(listed)
    ended, deaths = _run_until_done(site, DEATHS)
    assert deaths == DEATHS
    rest = expect([doc for doc in docs if doc.file != "part-003.jsonl"])
    lost = [("part-003.jsonl", 0)]
    check_published(site, ended, Expected(rest.kept, rest.rejects, sorted(rest.quarantine + lost)))
    assert site.verify(ended.run) == []


@pytest.mark.parametrize("how", ["raise", pytest.param("kill", marks=pytest.mark.soak)])
def test_a_global_step_that_fails_on_a_row(site: Site, docs: list[Doc], how: str) -> None:
    poisoned = _poisoned(docs, 3, 30) if how == "raise" else _poisoned(docs, 3)
    write_docs(site.input, poisoned)
    bad = {"op": "tests.pipelines.operators:BadKeys", "how": how}
    site.write_pipeline([bad if step["op"] == "dedup.exact" else step for step in steps()])
    ended, _ = _run_until_done(site, 2 * DEATHS if how == "kill" else 0)
    check_published(site, ended, _expected_at_global(poisoned))
    assert site.verify(ended.run) == []


def _expected_at_global(docs: list[Doc]) -> Expected:
    lost = [doc for doc in docs if DEADLY in doc.text]
    rest = expect([doc for doc in docs if doc not in lost])
    return Expected(rest.kept, rest.rejects, sorted(rest.quarantine + [(doc.file, 3) for doc in lost]))


@pytest.mark.integration
def test_deadly_rows_and_files_on_ray(site: Site, docs: list[Doc]) -> None:
    """One run: a deadly row in a first stage, one in a stage of its own behind it, one behind the global step."""
    poisoned = _poisoned(docs, 3, 30)
    write_docs(site.input, poisoned)
    site.write_pipeline(steps({"op": "tests.pipelines.operators:DeadlySmall"}))
    ended = site.run(engine="ray", cpus=2)
    check_published(site, ended, _expected(poisoned, step=3))
    assert site.verify(ended.run) == []
    for path in site.objects("work"):
        assert "/attempts/" not in str(path) or int(path.name) <= DEATHS + 2
