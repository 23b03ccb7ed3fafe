"""Input files that change: before, while and after they are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.pipelines.corpus import Doc, expect, make_docs, write_docs
from tests.pipelines.driving import Site, check_published

CHANGED = "part-004.jsonl"


def _other_text(path: Path) -> None:
    """Other words of the same length, and the old times put back: nothing but the content and ctime differ."""
    before = path.stat()
    body = path.read_bytes()
    assert b"weir" in body
    path.write_bytes(body.replace(b"weir", b"WEIR"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def _longer(path: Path) -> None:
    with path.open("a") as file:
        file.write('{"id": "new", "text": "a line that came after the plan was made"}\n')


def _gone(path: Path) -> None:
    path.unlink()


def _another_file(path: Path) -> None:
    """A new file under the old name, as editors and downloads leave it."""
    body, before = path.read_bytes(), path.stat()
    path.with_suffix(".new").write_bytes(body)
    os.utime(path.with_suffix(".new"), ns=(before.st_atime_ns, before.st_mtime_ns))
    path.with_suffix(".new").rename(path)


@pytest.mark.parametrize("change", [_other_text, _longer, _gone, _another_file])
def test_a_file_that_changes_between_plan_and_read_stops_the_run(site: Site, docs: list[Doc], change: object) -> None:
    marker = site.folder / "asleep"
    assert callable(change)

    # The run sleeps after its third unit was read; then the file of the fifth changes.
    started = site.start(fault="unit.after_read:3=pause 60", marker=str(marker))
    started.wait_for(marker)
    change(site.input / CHANGED)
    Path(f"{marker}.over").touch()
    ended = started.end()
    assert ended.error == "InputChanged"
    assert CHANGED in ended.text
    assert not site.rows()
    assert not site.lineage()

    again = site.run(cpus=2)
    assert again.status == "published"
    now = [doc for doc in docs if doc.file != CHANGED or change is not _gone]
    if change is _other_text:
        now = [Doc(d.file, d.id, d.text.replace("weir", "WEIR") if d.file == CHANGED else d.text) for d in docs]
    if change is _longer:
        now.append(Doc(CHANGED, "new", "a line that came after the plan was made"))
    check_published(site, again, expect(now))


@pytest.mark.parametrize("change", [_other_text, _another_file])
def test_contents_replaced_under_the_same_name_size_and_time_are_noticed(
    site: Site, docs: list[Doc], change: object
) -> None:
    first = site.run()
    assert callable(change)
    change(site.input / CHANGED)
    second = site.run()
    assert second.status == "published"
    now = docs
    if change is _other_text:
        now = [Doc(d.file, d.id, d.text.replace("weir", "WEIR") if d.file == CHANGED else d.text) for d in docs]
    check_published(site, second, expect(now))
    assert site.lineage()[-1]["supersedes"] == [first.run]


def test_a_new_file_replaces_the_contribution_of_the_source(site: Site, docs: list[Doc]) -> None:
    first = site.run()
    more = [Doc(f"more-{doc.file}", doc.id and f"m{doc.id}", doc.text) for doc in make_docs(seed=9, files=2)]
    write_docs(site.input, more)
    second = site.run()
    check_published(site, second, expect(docs + more))
    assert [row["run"] for row in site.lineage()] == [first.run, second.run]
    # An older version still holds the older rows, and what the first run dropped is still told.
    kept = sorted((row["id"], row["text"]) for row in site.rows(version=first.version))
    assert kept == expect(docs).kept
    assert site.found(first.run).rejects == expect(docs).rejects

    for path in site.input.glob("more-*"):
        path.unlink()
    third = site.run()
    assert third.status == "published"
    check_published(site, third, expect(docs))


def test_a_file_that_is_only_touched_is_new_work_with_the_same_rows(site: Site, docs: list[Doc]) -> None:
    site.run()
    os.utime(site.input / CHANGED)
    check_published(site, site.run(), expect(docs))


def test_a_folder_that_is_replaced_altogether(site: Site, docs: list[Doc]) -> None:
    site.run()
    site.input.rename(site.folder / "was")
    write_docs(site.input, docs[:10])
    done = site.run()
    check_published(site, done, expect(docs[:10]))
