from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.commit import CommitConflictError

from headrace.errors import CommitConflict, DataError
from headrace.storage import commit
from headrace.storage.commit import Commit, StagedFragment, create_target, find_run, is_conflict, publish
from headrace.storage.contract import DOCUMENT, Contract, contract_of
from headrace.storage.faults import fault
from headrace.storage.head import open_head, transaction_properties
from headrace.storage.lake import Lake
from headrace.storage.staging import path_in
from tests.storage.support import NAME, documents, ended, files_of, ids_in, process, staged, target


def once(monkeypatch: pytest.MonkeyPatch, point: str, act: Callable[[], object]) -> None:
    """Do `act` the first time that publishing passes this point, and not inside `act` itself."""
    waiting = [act]

    def pass_by(passed: str) -> None:
        if passed == point and waiting:
            waiting.pop()()

    monkeypatch.setattr(commit, "fault", pass_by)


def test_create_leaves_an_existing_target_alone(lake: Lake) -> None:
    target(lake)
    publish(lake, NAME, staged(lake, "a"), "run", {})
    create_target(lake, NAME, Contract(pa.schema(list(reversed(DOCUMENT)))))
    assert ids_in(lake) == ["a"]
    assert open_head(lake, NAME).version == 2


@pytest.mark.parametrize(
    ("contract", "column"),
    [
        (Contract(DOCUMENT.set(4, pa.field("source_offset", pa.float64()))), "source_offset"),
        (Contract(DOCUMENT.remove(2)), "source"),
        (Contract(DOCUMENT.append(pa.field("url", pa.string()))), "url"),
        (Contract(DOCUMENT, {"text": "evolve"}), "text"),
        (Contract(DOCUMENT, key=None), "id"),
    ],
)
def test_create_refuses_another_contract_and_names_the_column(contract: Contract, column: str, lake: Lake) -> None:
    target(lake)
    with pytest.raises(DataError, match=rf"{NAME}, column '{column}'"):
        create_target(lake, NAME, contract)
    assert contract_of(lake, NAME) == Contract(contract_of(lake, NAME).schema)
    assert open_head(lake, NAME).version == 1


def test_a_race_to_create_ends_with_one_empty_dataset(lake: Lake) -> None:
    errors: list[BaseException] = []
    barrier = threading.Barrier(8)

    def create() -> None:
        try:
            barrier.wait()
            target(lake)
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert open_head(lake, NAME).version == 1


def test_row_ids_are_stable(lake: Lake) -> None:
    target(lake)
    assert open_head(lake, NAME).has_stable_row_ids


def test_publishing_twice_commits_once(lake: Lake) -> None:
    target(lake)
    fragments = staged(lake, "a", "b")
    assert publish(lake, NAME, fragments, "run", {"headrace.pipeline": "p"}) == Commit(2, committed=True)
    assert publish(lake, NAME, fragments, "run", {}) == Commit(2, committed=False)
    assert publish(lake, NAME, staged(lake, "c"), "other", {}) == Commit(3, committed=True)
    assert publish(lake, NAME, fragments, "run", {}) == Commit(2, committed=False)
    assert ids_in(lake) == ["a", "b", "c"]
    assert transaction_properties(open_head(lake, NAME), 2) == {"headrace.run": "run", "headrace.pipeline": "p"}


def test_find_run_looks_down_to_the_base(lake: Lake) -> None:
    target(lake)
    publish(lake, NAME, staged(lake, "a"), "run", {})
    publish(lake, NAME, [], "other", {})
    assert find_run(lake, NAME, "run") == 2
    assert find_run(lake, NAME, "run", base=2) == 2
    assert find_run(lake, NAME, "run", base=3) is None
    assert find_run(lake, NAME, "none") is None


def test_no_fragments_still_make_a_version(lake: Lake) -> None:
    target(lake)
    assert publish(lake, NAME, [], "nothing kept", {}) == Commit(2, committed=True)
    publish(lake, NAME, staged(lake, "a"), "run", {})
    assert publish(lake, NAME, [], "nothing again", {}) == Commit(4, committed=True)
    assert ids_in(lake) == ["a"]


def test_order_is_the_order_given(lake: Lake) -> None:
    target(lake)
    fragments = staged(lake, "a", "b", "c")
    publish(lake, NAME, fragments[::-1], "run", {})
    assert ids_in(lake) == ["c", "b", "a"]


def test_the_same_run_commits_while_this_one_is_between_scan_and_commit(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    target(lake)
    fragments = staged(lake, "a", "b")
    for point in ("commit.after_scan", "commit.before"):
        run = f"run of {point}"
        fragments = staged(lake, f"a {point}", f"b {point}")
        once(monkeypatch, point, lambda run=run, fragments=fragments: publish(lake, NAME, fragments, run, {}))  # type: ignore[misc]
        version = open_head(lake, NAME).version + 1
        assert publish(lake, NAME, fragments, run, {}) == Commit(version, committed=False)
    assert sorted(ids_in(lake)) == sorted(f"{letter} commit.{p}" for letter in "ab" for p in ("after_scan", "before"))


def test_a_paused_process_finds_that_its_run_was_published(lake: Lake, tmp_path: Path) -> None:
    target(lake)
    fragments = staged(lake, "a", "b")
    scanned = tmp_path / "scanned"
    child = process(_publish_and_tell, lake, fragments, str(scanned), fault="commit.before:1=pause 1.5")
    while not scanned.exists() and child.is_alive():
        child.join(0.02)
    assert publish(lake, NAME, fragments, "run", {}).committed
    assert ended(child) == 0
    assert scanned.read_text() == "scanned, then committed=False"
    assert ids_in(lake) == ["a", "b"]


def test_another_run_in_between_loses_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    target(lake)
    mine, others = staged(lake, "mine"), staged(lake, "other")
    once(monkeypatch, "commit.before", lambda: publish(lake, NAME, others, "other", {}))
    assert publish(lake, NAME, mine, "mine", {}) == Commit(3, committed=True)
    assert sorted(ids_in(lake)) == ["mine", "other"]


def test_an_append_delete_or_compaction_in_between_loses_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    target(lake)
    publish(lake, NAME, staged(lake, "a", "b"), "first", {})
    changes: dict[str, Callable[[lance.LanceDataset], object]] = {
        "append": lambda head: lance.write_dataset(head.to_table(limit=1), head.uri, mode="append"),
        "delete": lambda head: head.delete("id = 'a'"),
        "compact": lambda head: head.optimize.compact_files(),
    }
    for run, change in changes.items():
        fragments = staged(lake, run)
        once(monkeypatch, "commit.before", lambda change=change: change(open_head(lake, NAME)))  # type: ignore[misc]
        assert publish(lake, NAME, fragments, run, {}).committed
    assert sorted(ids_in(lake)) == ["append", "b", "compact", "delete"]


def test_supersedes_replaces_exactly_the_named_fragments(lake: Lake) -> None:
    target(lake)
    first, second = staged(lake, "a", "b"), staged(lake, "c", "d")
    publish(lake, NAME, first, "first", {})
    publish(lake, NAME, second, "second", {})
    done = publish(lake, NAME, staged(lake, "e"), "third", {}, files_of(first))
    assert done == Commit(4, committed=True)
    assert ids_in(lake) == ["c", "d", "e"]
    assert ids_in(lake, f"{NAME}@3") == ["a", "b", "c", "d"]
    created = open_head(lake, NAME).to_table(columns=["id", "_row_created_at_version"]).to_pylist()
    assert [row["_row_created_at_version"] for row in created] == [3, 3, 4]


def test_superseding_with_nothing_and_everything(lake: Lake) -> None:
    target(lake)
    first = staged(lake, "a")
    publish(lake, NAME, first, "first", {})
    assert publish(lake, NAME, [], "second", {}, files_of(first)) == Commit(3, committed=True)
    assert ids_in(lake) == []
    assert publish(lake, NAME, [], "second", {}, files_of(first)) == Commit(3, committed=False)


def test_supersedes_stays_atomic_while_others_publish(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    target(lake)
    old, more = staged(lake, "old"), staged(lake, "more")
    publish(lake, NAME, old, "old", {})
    once(monkeypatch, "commit.before", lambda: publish(lake, NAME, more, "more", {}))
    done = publish(lake, NAME, staged(lake, "new"), "new", {}, files_of(old))
    assert done == Commit(4, committed=True)
    assert sorted(ids_in(lake)) == ["more", "new"]
    assert sorted(ids_in(lake, f"{NAME}@3")) == ["more", "old"]


def test_two_coordinators_of_one_superseding_run(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    target(lake)
    old, new = staged(lake, "old"), staged(lake, "new")
    publish(lake, NAME, old, "old", {})
    once(monkeypatch, "commit.before", lambda: publish(lake, NAME, new, "new", {}, files_of(old)))
    assert publish(lake, NAME, new, "new", {}, files_of(old)) == Commit(3, committed=False)
    assert ids_in(lake) == ["new"]


@pytest.mark.parametrize("change", ["append", "delete kept", "delete replaced", "replace another", "widen"])
def test_a_replacement_is_exact_whatever_comes_between(
    change: str, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    target(lake)
    old, more = staged(lake, "old 1", "old 2"), staged(lake, "more 1", "more 2")
    publish(lake, NAME, old, "old", {})
    publish(lake, NAME, more, "more", {})
    uri, others = lake.dataset_uri(NAME), staged(lake, "others")
    changes: dict[str, tuple[Callable[[], object], list[str]]] = {
        "append": (lambda: lance.write_dataset(documents(["x"]), uri, mode="append"), ["more 1", "more 2", "x"]),
        "delete kept": (lambda: open_head(lake, NAME).delete("id = 'more 1'"), ["more 2"]),
        "delete replaced": (lambda: open_head(lake, NAME).delete("id = 'old 1'"), ["more 1", "more 2"]),
        "replace another": (
            lambda: publish(lake, NAME, others, "others", {}, files_of(more[:1])),
            ["more 2", "others"],
        ),
        "widen": (lambda: open_head(lake, NAME).add_columns(pa.field("url", pa.string())), ["more 1", "more 2"]),
    }
    act, stays = changes[change]
    once(monkeypatch, "commit.before", act)
    assert publish(lake, NAME, staged(lake, "new"), "new", {}, files_of(old)) == Commit(5, committed=True)
    assert sorted(ids_in(lake)) == sorted([*stays, "new"])


def test_what_another_run_replaced_meanwhile_is_no_error(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    target(lake)
    old, one, other = staged(lake, "old"), staged(lake, "one"), staged(lake, "other")
    publish(lake, NAME, old, "old", {})
    once(monkeypatch, "commit.before", lambda: publish(lake, NAME, other, "other", {}, files_of(old)))
    assert publish(lake, NAME, one, "one", {}, files_of(old)) == Commit(4, committed=True)
    assert sorted(ids_in(lake)) == ["one", "other"]


def test_what_to_supersede_is_asked_for_each_head(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    target(lake)
    old, meanwhile = staged(lake, "old"), staged(lake, "meanwhile")
    publish(lake, NAME, old, "old", {})
    asked: list[int] = []

    def all_there(version: int) -> tuple[frozenset[str], dict[str, str]]:
        asked.append(version)
        return files_of([*old, *meanwhile]) if version == 3 else files_of(old), {"told": str(version)}

    once(monkeypatch, "commit.before", lambda: publish(lake, NAME, meanwhile, "meanwhile", {}))
    assert publish(lake, NAME, staged(lake, "new"), "new", {}, all_there) == Commit(4, committed=True)
    assert asked == [2, 3]
    assert ids_in(lake) == ["new"]
    assert transaction_properties(open_head(lake, NAME), 4)["told"] == "3"


def test_compacted_rows_are_not_left_beside_their_replacement(lake: Lake) -> None:
    target(lake)
    old = staged(lake, "old")
    publish(lake, NAME, old, "old", {})
    publish(lake, NAME, staged(lake, "more"), "more", {})
    open_head(lake, NAME).optimize.compact_files()  # reserves fragment ids in a version of its own first
    with pytest.raises(DataError, match=rf"{old[0].files[0].path} to replace; version 5 compacted it"):
        publish(lake, NAME, staged(lake, "new"), "new", {}, files_of(old))
    assert sorted(ids_in(lake)) == ["more", "old"]


def test_staged_files_are_checked_before_the_commit(lake: Lake) -> None:
    target(lake)
    (fragment,) = staged(lake, "a")
    Path(path_in(lake, NAME, fragment.files[0].path)).unlink()
    with pytest.raises(DataError, match=f"{fragment.files[0].path} missing"):
        publish(lake, NAME, [fragment], "run", {})
    assert open_head(lake, NAME).version == 1


def test_a_file_is_published_once(lake: Lake) -> None:
    target(lake)
    fragments = staged(lake, "a")
    publish(lake, NAME, fragments, "run", {})
    with pytest.raises(DataError, match=f"{fragments[0].files[0].path} in version 2"):
        publish(lake, NAME, fragments, "another run", {})
    assert ids_in(lake) == ["a"]


def test_a_run_found_again_needs_its_files_no_more(lake: Lake) -> None:
    target(lake)
    fragments = staged(lake, "a")
    publish(lake, NAME, fragments, "run", {})
    Path(path_in(lake, NAME, fragments[0].files[0].path)).unlink()
    assert publish(lake, NAME, fragments, "run", {}) == Commit(2, committed=False)


@pytest.mark.parametrize("point", ["commit.after_scan", "commit.before", "commit.after"])
def test_killed_around_the_commit_and_published_again(point: str, lake: Lake) -> None:
    target(lake)
    old, fragments = staged(lake, "old"), staged(lake, "a", "b")
    publish(lake, NAME, old, "old", {})
    child = process(publish, lake, NAME, fragments, "run", {}, files_of(old), fault=point)
    assert ended(child) == -signal.SIGKILL
    assert ids_in(lake) == (["a", "b"] if point == "commit.after" else ["old"])
    again = publish(lake, NAME, fragments, "run", {}, files_of(old))
    assert again == Commit(3, committed=point != "commit.after")
    assert ids_in(lake) == ["a", "b"]


def test_a_crowd_of_coordinators_publishes_every_row_once(lake: Lake) -> None:
    target(lake)
    runs = {f"run {number}": staged(lake, f"{number}a", f"{number}b") for number in range(4)}
    names = list(runs)
    # Each run has two coordinators, in two processes: process n works on runs n and n + 1.
    crowd = [
        process(_publish_both, lake, [(name, runs[name]) for name in (names[n], names[(n + 1) % 4])], fault=PAUSE)
        for n in range(4)
    ]
    assert [ended(child) for child in crowd] == [0, 0, 0, 0]
    assert sorted(ids_in(lake)) == sorted(f"{number}{letter}" for number in range(4) for letter in "ab")
    head = open_head(lake, NAME)
    published = [transaction_properties(head, version).get("headrace.run") for version in range(2, head.version + 1)]
    assert sorted(name for name in published if name) == names


def test_an_endless_race_is_given_up(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    target(lake)
    fragments = staged(lake, "a")
    monkeypatch.setattr(commit, "_TRIES", 3)

    def always_first(point: str) -> None:
        if point == "commit.before":
            lance.write_dataset(open_head(lake, NAME).to_table(), lake.dataset_uri(NAME), mode="append")

    monkeypatch.setattr(commit, "fault", always_first)
    with pytest.raises(CommitConflict, match="3 lost races") as told:
        publish(lake, NAME, fragments, "run", {})
    assert told.value.retryable
    assert not open_head(lake, NAME).count_rows()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (CommitConflictError("x", True), True),
        (OSError("Retryable commit conflict for version 3: preempted"), True),
        (OSError("Incompatible transaction: Overwrite at version 3"), True),
        (OSError("Commit conflict for version 3: concurrent"), True),
        (OSError("Failed to commit the transaction after 0 retries."), True),
        (OSError("No space left on device"), False),
        (OSError("Failed to commit: access denied"), False),
        (ValueError("Retryable commit conflict"), False),
    ],
)
def test_conflicts_are_told_by_class_and_text(error: BaseException, told: bool) -> None:
    assert is_conflict(error) is told


PAUSE = "commit.after_scan=pause 0.05"


def _publish_both(lake: Lake, work: list[tuple[str, list[StagedFragment]]]) -> None:
    failed: list[str] = []

    def coordinate(run: str, fragments: list[StagedFragment]) -> None:
        try:
            publish(lake, NAME, fragments, run, {})
        except BaseException:
            failed.append(run)
            raise

    threads = [threading.Thread(target=coordinate, args=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise SystemExit(1)


def _publish_and_tell(lake: Lake, fragments: list[StagedFragment], path: str) -> None:
    """Publish with a pause between scan and commit; write the file when the pause begins, add to it at the end."""
    told = Path(path)

    def tell(point: str) -> None:
        if point == "commit.after_scan":
            told.write_text("scanned")
        fault(point)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit, "fault", tell)
        done = publish(lake, NAME, fragments, "run", {})
    told.write_text(f"{told.read_text()}, then committed={done.committed}")
