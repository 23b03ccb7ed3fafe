"""Verification recounts from bytes: whoever changes a published row afterwards is found out."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import lance
import pytest

from headrace.errors import DatasetNotFound, GateFailed
from headrace.pipelines.publish import report_key
from headrace.pipelines.records import UnitRecord, finished_units
from headrace.pipelines.run import RunResult, run
from headrace.pipelines.runs import list_runs
from headrace.pipelines.spec import Gates
from headrace.pipelines.verify import Verification, verify_run
from headrace.storage.commit import stage
from headrace.storage.lake import Lake
from tests.pipelines.plain import FirstOfText, Raises, Shout, Without, lines_pipeline, write_lines

STEPS = (Raises(), Without(word="drop"), FirstOfText(), Shout())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "in", a=["one", "drop me", "bad", "?broken"], b=["one", "two", "drop too"])


@pytest.fixture
def result(lake: Lake, folder: Path) -> RunResult:
    return run(lines_pipeline(folder, *STEPS), lake=lake, engine="local")


def failed(verification: Verification) -> dict[str, tuple[object, object]]:
    """The checks that failed: counted and expected."""
    assert verification.ok == (not any(check.passed is False for check in verification.checks))
    return {check.check: (check.counted, check.expected) for check in verification.checks if check.passed is False}


def delete_row(lake: Lake, name: str, id: str) -> None:
    dataset = lance.dataset(lake.dataset_uri(name))
    before = dataset.count_rows()
    dataset.delete(f"id = '{id}'")
    assert lance.dataset(lake.dataset_uri(name)).count_rows() == before - 1


def test_a_run_as_it_was_published_passes_every_check(lake: Lake, result: RunResult) -> None:
    verification = verify_run(lake, result.run)
    assert verification.ok
    assert all(check.passed for check in verification.checks)
    assert {check.check: check.counted for check in verification.checks} | {} == {
        "kept rows that cannot be read": "none",
        "kept rows": 2,
        "rejected rows": 3,
        "quarantined rows": 2,
        "steps[0] tests.pipelines.plain:Lines dropped": {},
        "steps[0] tests.pipelines.plain:Lines quarantined": 1,
        "steps[1] tests.pipelines.plain:Raises dropped": {},
        "steps[1] tests.pipelines.plain:Raises quarantined": 1,
        "steps[2] tests.pipelines.plain:Without dropped": {"without": 2},
        "steps[2] tests.pipelines.plain:Without quarantined": 0,
        "steps[3] tests.pipelines.plain:FirstOfText dropped": {"repeated": 1},
        "steps[3] tests.pipelines.plain:FirstOfText quarantined": 0,
        "steps[4] tests.pipelines.plain:Shout dropped": {},
        "steps[4] tests.pipelines.plain:Shout quarantined": 0,
        "rows read": 7,
        "rows read = kept + rejected + quarantined": 7,
        "places read = places kept, rejected and quarantined": verification.checks[-1].counted,
    }
    assert verification.to_dict()["ok"] is True


def test_a_deleted_reject_is_missed(lake: Lake, result: RunResult) -> None:
    delete_row(lake, "out.rejects", "a-1")
    assert failed(verify_run(lake, result.run)) == {
        "rejected rows": (2, 3),
        "steps[2] tests.pipelines.plain:Without dropped": ({"without": 1}, {"without": 2}),
        "rows read = kept + rejected + quarantined": (7, 6),
        **places_of(verify_run(lake, result.run)),
    }


def test_a_deleted_quarantined_row_is_missed(lake: Lake, result: RunResult) -> None:
    delete_row(lake, "out.quarantine", "a-2")
    found = failed(verify_run(lake, result.run))
    assert found["quarantined rows"] == (1, 2)
    assert found["steps[1] tests.pipelines.plain:Raises quarantined"] == (0, 1)


def test_a_published_version_that_was_made_again_with_other_rows_is_seen(lake: Lake, result: RunResult) -> None:
    """A delete makes a version of its own and leaves the published one alone, so that somebody has to go further."""
    uri = lake.dataset_uri("out")
    published = lance.dataset(uri)
    properties = published.read_transaction(result.version).transaction_properties
    delete_row(lake, "out", "b-1")
    assert verify_run(lake, result.run).ok
    damaged = published.to_table(filter="id != 'b-1'")
    for manifest in sorted((Path(uri) / "_versions").glob("*.manifest"), key=lambda path: path.stat().st_mtime_ns)[-2:]:
        manifest.unlink()
    assert lance.dataset(uri).version == result.version - 1
    (staged,) = stage(lake, "out", damaged)
    operation = lance.LanceOperation.Append([staged.metadata()])
    transaction = lance.Transaction(result.version - 1, operation, transaction_properties=properties)
    assert lance.LanceDataset.commit(uri, transaction).version == result.version
    assert failed(verify_run(lake, result.run)) == {
        "kept rows": (0, 2),  # the file that the run staged is not in its version
        "rows read = kept + rejected + quarantined": (7, 5),
        **places_of(verify_run(lake, result.run)),
    }


def test_a_kept_row_that_lost_its_place_is_seen(lake: Lake, result: RunResult) -> None:
    """As if the run itself had published it so: the record is made to name the other file."""
    (key,) = finished_units(lake.objects, f"runs/{result.run}/segment-1").values()
    record = UnitRecord.from_json(lake.objects.get(key))
    head = lance.dataset(lake.dataset_uri("out"))
    rows = head.to_table().set_column(4, "source_offset", [[7, 8]])
    (staged,) = stage(lake, "out", rows)
    operation = lance.LanceOperation.Overwrite(head.lance_schema, [staged.metadata()])
    properties = head.read_transaction(result.version).transaction_properties
    for manifest in sorted((Path(head.uri) / "_versions").glob("*.manifest"), key=lambda p: p.stat().st_mtime_ns)[-1:]:
        manifest.unlink()
    transaction = lance.Transaction(result.version - 1, operation, transaction_properties=properties)
    lance.LanceDataset.commit(head.uri, transaction)
    changed = dataclasses.replace(record, staged={**record.staged, "kept": (staged,)})
    lake.objects.put(key, changed.to_json())
    assert failed(verify_run(lake, result.run)) == places_of(verify_run(lake, result.run))


def places_of(verification: Verification) -> dict[str, tuple[object, object]]:
    name = "places read = places kept, rejected and quarantined"
    (check,) = (check for check in verification.checks if check.check == name)
    assert check.passed is False
    return {name: (check.counted, check.expected)}


def test_a_row_that_took_anothers_place_is_seen(lake: Lake, result: RunResult) -> None:
    """Counts alone would not tell."""
    dataset = lance.dataset(lake.dataset_uri("out.rejects"))
    dataset.update({"source_offset": "99"}, where="id = 'a-1'")
    assert failed(verify_run(lake, result.run)) == places_of(verify_run(lake, result.run))


def test_a_report_that_lies_is_seen(lake: Lake, result: RunResult) -> None:
    body = lake.objects.get(report_key(result.run))
    lake.objects.put(report_key(result.run), body.replace(b'"repeated": 1', b'"repeated": 2'))
    name = "steps[3] tests.pipelines.plain:FirstOfText dropped"
    assert failed(verify_run(lake, result.run)) == {name: ({"repeated": 1}, {"repeated": 2})}


def test_a_changed_input_is_not_compared_and_that_is_said(lake: Lake, result: RunResult, folder: Path) -> None:
    file = folder / "a.txt"
    os.utime(file, ns=(1, 1))
    verification = verify_run(lake, result.run)
    (check,) = (check for check in verification.checks if check.passed is None)
    assert (check.check, check.counted, check.expected) == ("rows read", None, 7)
    assert "a.txt" in check.note
    assert "the input cannot be read as planned" in check.note
    assert verification.ok  # nothing contradicts; the note says what could not be made
    file.unlink()
    assert [check.check for check in verify_run(lake, result.run).checks if check.passed is None] == ["rows read"]


def test_other_runs_of_the_dataset_do_not_count(lake: Lake, result: RunResult, folder: Path) -> None:
    other = write_lines(folder.parent / "other", c=["three", "drop"])
    second = run(lines_pipeline(other, *STEPS, pipeline="more"), lake=lake, engine="local")
    replaced = run(lines_pipeline(folder, *STEPS[:3], Shout(mark="?")), lake=lake, engine="local")
    for published in (result, second, replaced):
        assert verify_run(lake, published.run).ok


def test_an_unpublished_run_cannot_be_verified(lake: Lake, folder: Path) -> None:
    with pytest.raises(GateFailed):
        run(lines_pipeline(folder, *STEPS, gates=Gates(min_rows=1000)), lake=lake, engine="local")
    (info,) = list_runs(lake)
    with pytest.raises(DatasetNotFound, match=f"has published nothing yet; headrace resume {info.run}"):
        verify_run(lake, info.run)
    with pytest.raises(DatasetNotFound, match="no such run"):
        verify_run(lake, "nosuchrun")


def test_kept_rows_that_cannot_be_read_do_not_verify(lake: Lake, result: RunResult) -> None:
    data = Path(lake.dataset_uri(result.output)) / "data"
    for file in data.iterdir():
        body = bytearray(file.read_bytes())
        body[: len(body) // 2] = bytes(len(body) // 2)
        file.write_bytes(body)
    (check,) = [c for c in verify_run(lake, result.run).checks if c.check == "kept rows that cannot be read"]
    assert check.passed is False
