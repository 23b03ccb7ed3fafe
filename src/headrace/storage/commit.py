"""Publishing staged fragments exactly once, whatever races or crashes: commit by compare-and-swap.

1. Read the head, version v, and look for the run id in every commit up to v.  Found: nothing is left to do.
2. Build a commit that is valid only on top of v: a Merge of v's fragments plus the staged ones, or an Update where
   fragments of v are replaced; both with `read_version=v` and no retries inside Lance.
3. Commit.  If any version came between, Lance refuses; go to 1, since the winner may have been this very run.

An Append would not do: Lance rebases it on whatever came between, and two coordinators of one run both land.
No lease is needed for correctness.  Staged files are never deleted here, least of all because a commit raised: the
commit may have happened all the same.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import lance
from lance import LanceOperation, Transaction
from lance.commit import CommitConflictError

from headrace.errors import CommitConflict, DataError
from headrace.storage.contract import Contract, first_difference, stored_contract
from headrace.storage.faults import fault
from headrace.storage.foreign import storage_calls
from headrace.storage.head import head_or_none, open_head, transaction_properties, version_numbers
from headrace.storage.lake import Lake
from headrace.storage.staging import StagedFile, StagedFragment, check_staged, missing_files, stage

__all__ = [
    "RUN",
    "Commit",
    "StagedFile",
    "StagedFragment",
    "check_staged",
    "create_target",
    "find_run",
    "is_conflict",
    "missing_files",
    "publish",
    "stage",
]

RUN = "headrace.run"
"""Transaction property that names the run of a commit."""

Superseding = Callable[[int], tuple[frozenset[str], Mapping[str, str]]]
"""Version of the head -> data files to replace, and properties that tell of it."""

_TRIES = 60
_CONFLICT_MARKS = ("retryable commit conflict", "commit conflict for version", "incompatible transaction")


@dataclass(frozen=True)
class Commit:
    """Where a run's rows are published, and whether this call did it."""

    version: int
    committed: bool


def create_target(lake: Lake, name: str, contract: Contract) -> None:
    """Create the empty dataset with its contract; one that exists with an equal contract is left alone.

    DataError that names the column where an existing dataset has another contract.
    """
    uri = lake.dataset_uri(name)
    existing = head_or_none(lake, name)
    if existing is None:
        try:
            with storage_calls(uri):
                # Not write_dataset(mode="create"): in a race its second writer overwrites, at version 2 or later.
                lance.LanceDataset.commit(
                    uri,
                    Transaction(0, LanceOperation.Overwrite(contract.arrow_schema(), [])),
                    max_retries=0,
                    enable_v2_manifest_paths=True,
                    enable_stable_row_ids=True,  # can be switched on only now; delta() is wrong without
                    storage_options=lake.storage_options(),
                )
            return
        except OSError:
            existing = head_or_none(lake, name)  # somebody else may have created it meanwhile
            if existing is None:
                raise
    if (difference := first_difference(stored_contract(existing.schema), contract)) is not None:
        column, has, wanted = difference
        fix = "publish to another dataset, or change the pipeline to give this column"
        raise DataError(f"dataset {name}, column {column!r}", wanted, f"the existing dataset has {has}", fix)


def publish(
    lake: Lake,
    name: str,
    staged: Sequence[StagedFragment],
    run: str,
    properties: Mapping[str, str],
    supersedes: frozenset[str] | Superseding = frozenset(),
    base: int = 1,
) -> Commit:
    """Make the staged fragments, in this order, part of the dataset once; say at which version they are.

    `supersedes` names data files: the fragments that hold them leave the dataset in the same commit.  Those that are
    gone already, since another run replaced them, are no error.  A function is asked anew for each head, since what is
    to be replaced may have come between; it also gives properties of the commit that say so.  `base` is a version
    above which the run must have landed if it has (the plan's base version), which spares reading older commits.
    No fragments still make a version: "everything was dropped" is a result too.  Raises DataError where a staged file
    is missing, cut or in the dataset already, CommitConflict where others kept winning.
    """
    uri, checked = lake.dataset_uri(name), False
    for attempt in range(_TRIES):
        head = open_head(lake, name)
        if (version := _find(head, run, base)) is not None:
            return Commit(version, committed=False)
        base = head.version + 1  # the next scan has only newer commits left to read
        fault("commit.after_scan")
        if not checked:
            check_staged(lake, name, staged)
            checked = True
        files, told = supersedes(int(head.version)) if callable(supersedes) else (supersedes, {})
        operation = _operation(head, name, staged, files)
        transaction = Transaction(head.version, operation, transaction_properties={**properties, **told, RUN: run})
        fault("commit.before")
        try:
            with storage_calls(uri):
                committed = lance.LanceDataset.commit(
                    uri, transaction, max_retries=0, storage_options=lake.storage_options()
                )
        except OSError as error:
            if not is_conflict(error.__cause__ or error):
                raise
            time.sleep(random.uniform(0, min(1.0, 0.01 * 2**attempt)))
            continue
        fault("commit.after")
        return Commit(int(committed.version), committed=True)
    fix = "run again: what is staged is kept"
    raise CommitConflict(f"dataset {name}", f"{_TRIES} lost races", "another writer always came first", fix)


def find_run(lake: Lake, name: str, run: str, base: int = 1) -> int | None:
    """The version that this run published, looked for from the head down to `base`; None where it did not."""
    return _find(open_head(lake, name), run, base)


def is_conflict(error: BaseException) -> bool:
    """True where Lance refused a commit because another came first; its classes are uneven, so the text counts too."""
    if isinstance(error, CommitConflictError):
        return True
    text = str(error).lower()
    return isinstance(error, OSError) and (
        any(mark in text for mark in _CONFLICT_MARKS) or ("failed to commit" in text and "after 0 retries" in text)
    )


def _find(dataset: lance.LanceDataset, run: str, base: int) -> int | None:
    for version in reversed(version_numbers(dataset)):
        if base <= version <= dataset.version and transaction_properties(dataset, version).get(RUN) == run:
            return version
    return None


def _operation(
    head: lance.LanceDataset, name: str, staged: Sequence[StagedFragment], supersedes: frozenset[str]
) -> LanceOperation.BaseOperation:
    present = [fragment.metadata for fragment in head.get_fragments()]
    held = {file.path for fragment in present for file in fragment.files}
    for fragment in staged:
        for file in fragment.files:
            if file.path in held:
                rule = "a data file can be published once, and no commit of this run is there to explain it"
                raise DataError(
                    f"staged files of {name}", f"{file.path} in version {head.version}", rule, "start a new run"
                )
    _refuse_compacted(head, name, supersedes - held)
    removed = [fragment.id for fragment in present if any(file.path in supersedes for file in fragment.files)]
    added = [fragment.metadata() for fragment in staged]
    if removed:
        return LanceOperation.Update(removed_fragment_ids=removed, new_fragments=added)
    return LanceOperation.Merge([*present, *added], head.lance_schema)  # `head.schema` would renumber field ids


def _refuse_compacted(head: lance.LanceDataset, name: str, gone: frozenset[str]) -> None:
    """A file that another run replaced is rightly gone; one that was compacted left its rows in the dataset."""
    if not gone:
        return
    for version in version_numbers(head):
        transaction = head.read_transaction(version)
        if transaction is None or not isinstance(transaction.operation, LanceOperation.Rewrite):
            continue
        for group in transaction.operation.groups:
            for file in (file for fragment in group.old_fragments for file in fragment.files):
                if file.path in gone:
                    rule = f"version {version} compacted it, so its rows cannot be replaced as a fragment"
                    fix = "restore the version before, or publish everything to a new dataset"
                    raise DataError(f"dataset {name}", f"{file.path} to replace", rule, fix)
