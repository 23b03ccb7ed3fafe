"""A step's code is part of what a run is: edits are not answered with old rows, nor mixed without being told."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.corpus import Doc, Expected, expect
from tests.pipelines.driving import Ended, Site, check_published
from tests.pipelines.watching import Opens

MARK = """
    import pyarrow as pa
    from headrace.operators.shapes import Map, MapFunction
    {extra}

    class Mark(Map):
        def build(self) -> MapFunction:
            def mark(table: pa.Table) -> pa.Table:
                texts = [text + {mark} for text in table["text"].to_pylist()]
                return table.set_column(table.column_names.index("text"), "text", pa.array(texts, pa.large_string()))

            return mark
"""


def _write_step(site: Site, mark: str, extra: str = "", name: str = "my_marks") -> None:
    (site.folder / f"{name}.py").write_text(textwrap.dedent(MARK).format(mark=mark, extra=extra), encoding="utf-8")


def _steps(before: bool, after: bool, name: str = "my_marks") -> list[dict[str, Any]]:
    """The standard steps with the user's own one before or after the global step."""
    own = {"op": f"{name}:Mark"}
    listed: list[dict[str, Any]] = [{"op": "read.jsonl", "root": "in"}, {"op": "text.normalize"}]
    listed += [{"op": "tests.pipelines.operators:Refuse"}]
    listed += [own] * before + [{"op": "dedup.exact"}] + [own] * after
    return [*listed, {"op": "text.length", "min_chars": 20}]


def _marked(docs: list[Doc], mark: str, between: int) -> Expected:
    """The mark is shorter than what tells a short text from a long one."""
    plain = expect(docs, between=between)
    rejects = [(n, step + (not between and rule != "duplicate"), rule, p) for n, step, rule, p in plain.rejects]
    return Expected([(name, text + mark) for name, text in plain.kept], sorted(rejects), plain.quarantine)


def _run_twice(site: Site, **given: Any) -> Ended:
    done = site.run(**given)
    assert done.status == "published"
    again = site.run(**given)
    assert (again.status, again.run, again.version) == ("already published", done.run, done.version)
    return done


def test_an_edited_module_is_new_work(site: Site, docs: list[Doc]) -> None:
    site.write_pipeline(_steps(before=True, after=False))
    _write_step(site, "' a'")
    first = _run_twice(site)
    _write_step(site, "' b'")
    second = _run_twice(site)
    assert second.run != first.run
    check_published(site, second, _marked(docs, " b", between=1))
    assert site.lineage()[-1]["supersedes"] == [first.run]


@pytest.mark.parametrize("how", ["import", "from", "inside", "package", "relative"])
def test_an_edited_module_that_the_step_imports_is_new_work(site: Site, docs: list[Doc], how: str) -> None:
    """`from x import y`, `import x`, an import inside a function, a subpackage, a relative import in a package."""
    name, helper = "my_marks", site.folder / "my_words.py"
    if how == "package":
        (site.folder / "my_words").mkdir()
        (site.folder / "my_words" / "__init__.py").write_text("")
        helper = site.folder / "my_words" / "deep.py"
        _write_step(site, "my_words.deep.word()", "import my_words.deep")
    elif how == "relative":
        (site.folder / "mine").mkdir()
        (site.folder / "mine" / "__init__.py").write_text("")
        helper, name = site.folder / "mine" / "words.py", "mine.marks"
        _write_step(site, "words.word()", "from . import words", name="mine/marks")
    elif how == "inside":
        _write_step(site, "word()", "def word() -> str:\n        import my_words\n        return my_words.word()\n")
        text = (site.folder / "my_marks.py").read_text()
        assert "import my_words" in text
    else:
        extra = {"import": "import my_words as w", "from": "from my_words import word"}[how]
        _write_step(site, {"import": "w.word()", "from": "word()"}[how], extra)
    helper.write_text("def word():\n    return ' a'\n")
    site.write_pipeline(_steps(before=True, after=False, name=name))
    first = _run_twice(site)
    helper.write_text("def word():\n    return ' b'\n")
    second = _run_twice(site)
    assert second.run != first.run
    check_published(site, second, _marked(docs, " b", between=1))


def test_a_lone_module_beside_a_package_that_imports_it(site: Site, docs: list[Doc]) -> None:
    (site.folder / "mine").mkdir()
    (site.folder / "mine" / "__init__.py").write_text("")
    helper = site.folder / "my_words.py"
    helper.write_text("def word():\n    return ' a'\n")
    _write_step(site, "my_words.word()", "import my_words", name="mine/marks")
    site.write_pipeline(_steps(before=True, after=False, name="mine.marks"))
    first = _run_twice(site)
    helper.write_text("def word():\n    return ' b'\n")
    second = _run_twice(site)
    assert second.run != first.run
    check_published(site, second, _marked(docs, " b", between=1))


def test_an_edit_behind_the_global_step_redoes_only_its_segment(site: Site, docs: list[Doc]) -> None:
    site.write_pipeline(_steps(before=False, after=True))
    _write_step(site, "' a'")
    first = _run_twice(site)
    _write_step(site, "' b'")
    with Opens(site.input) as opens:
        second = site.run()
        assert not opens.take()
    assert second.run != first.run
    assert {segment for segment, _ in second.units} == {1}
    check_published(site, second, _marked(docs, " b", between=0))


def test_what_shared_units_dropped_is_told_for_each_run(site: Site) -> None:
    """Rejects and quarantine of the units before the global step belong to both runs, each under its own name."""
    listed = _steps(before=False, after=True)
    site.write_pipeline([*listed[:3], listed[-1], *listed[3:-1]])
    _write_step(site, "' a'")
    first = site.run()
    _write_step(site, "' b'")
    second = site.run()
    assert {segment for segment, _ in second.units} == {1}
    told = [site.found(ended.run) for ended in (first, second)]
    assert told[0].rejects == told[1].rejects
    assert {rule for _, _, rule, _ in told[0].rejects} == {"min_chars", "duplicate"}
    assert told[0].quarantine == told[1].quarantine != []


def test_an_edit_taken_back_publishes_the_first_rows_again(site: Site, docs: list[Doc]) -> None:
    site.write_pipeline(_steps(before=False, after=True))
    runs = []
    for mark in (" a", " b", " a", " b", " a"):
        _write_step(site, repr(mark))
        done = _run_twice(site)
        check_published(site, done, _marked(docs, mark, between=0))
        runs.append(done.run)
    assert len(set(runs)) == 5
    assert [row["supersedes"] for row in site.lineage()] == [[], *([run] for run in runs[:-1])]


def _crash_and_edit(site: Site, fault: str) -> str:
    site.write_pipeline(_steps(before=True, after=False))
    _write_step(site, "' a'")
    assert site.run(fault=fault).was_killed
    _write_step(site, "' b'")
    (plan,) = site.objects("runs")[:1]
    return json.loads(plan.read_text())["run"]  # type: ignore[no-any-return]


def _mixed(docs: list[Doc], old_files: set[str]) -> Expected:
    """What accepted code gives: the files of finished units as the old code left them.

    A text with another mark is no duplicate any more, so both groups are worked out together on marked texts.
    """
    marked = [Doc(d.file, d.id, d.text + (" a" if d.file in old_files else " b")) for d in docs]
    return expect(marked, between=1, min_chars=20)


@pytest.mark.parametrize("engine", ["local"])
def test_resume_refuses_changed_code_until_it_is_accepted(site: Site, docs: list[Doc], engine: str) -> None:
    run = _crash_and_edit(site, "driver.after_unit:4")
    finished, _ = site.finished_units()
    assert len(finished) >= 4
    refused = site.run(resume=run)
    assert refused.error == "SpecError"
    assert "steps[3]" in refused.text
    assert "my_marks:Mark" in refused.text
    assert site.run(resume=run, accept=["text.normalize"]).error == "SpecError"

    with Opens(site.input) as opens:
        done = site.run(resume=run, accept=["my_marks:Mark"])
        opened = set(opens.take())
    assert done.run == run
    names = sorted({doc.file for doc in docs})
    old = {names[unit] for unit in finished}
    assert opened == set(names) - old
    check_published(site, done, _mixed(docs, old))
    (row,) = site.lineage()
    report = json.loads(row["report"])
    (change,) = report["accepted"]
    assert change["op"] == "my_marks:Mark"
    assert change["before"] != change["after"]
    assert set(report["steps"][3]["digests"]) == {change["before"], change["after"]}
    assert len(report["steps"][1]["digests"]) == 1

    # The mixed run is no answer to whoever asks for the new code alone, nor for the old code alone.
    for mark in (" a", " b"):
        _write_step(site, repr(mark))
        pure = site.run()
        assert pure.status == "published"
        assert pure.run != run
        check_published(site, pure, _marked(docs, mark, between=1))


def test_running_the_file_anew_after_a_crash_and_an_edit_mixes_nothing(site: Site, docs: list[Doc]) -> None:
    run = _crash_and_edit(site, "driver.after_unit:4")
    done = site.run()
    assert done.run != run
    check_published(site, done, _marked(docs, " b", between=1))


def test_an_accepted_change_and_lost_files_are_told_as_they_are(site: Site, docs: list[Doc]) -> None:
    """The report is stored before the first commit; units that are done again after that must still be in it."""
    run = _crash_and_edit(site, "publish.before_kept")
    for data in Path(site.lake / f"{site.output}.lance" / "data").iterdir():
        data.unlink()
    assert len(site.run(resume=run, accept=["my_marks:Mark"]).warnings) == len({doc.file for doc in docs})
    (row,) = site.lineage()
    (change,) = json.loads(row["report"])["accepted"]
    assert change["op"] == "my_marks:Mark"
    verified = site.run(verify=run)
    assert verified.ok, verified.checks


def test_an_edit_in_the_same_process_is_not_answered_with_old_code(site: Site, docs: list[Doc]) -> None:
    """As in a notebook: run, edit the module, run again without a new process."""
    site.write_pipeline(_steps(before=False, after=True))
    _write_step(site, "' a'")
    edited = textwrap.dedent(MARK).format(mark="' b'", extra="")
    (site.folder / "edited.txt").write_text(edited)
    both = site.run(then=[["edited.txt", "my_marks.py"]])
    if both.then.get("error") == "SpecError":
        assert "my_marks" in both.then["text"]
        assert site.run().status == "published"
    kept = site.rows()
    done = site.run()
    assert done.status == "already published"
    assert site.rows() == kept
    check_published(site, done, _marked(docs, " b", between=0))
