"""Rows, staged fragments and other processes for the storage tests."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from headrace.storage.commit import StagedFragment, create_target, stage
from headrace.storage.contract import DOCUMENT, QUARANTINE, REJECTS, Contract
from headrace.storage.faults import VARIABLE
from headrace.storage.lake import Lake
from headrace.storage.open import open_version

NAME = "docs/python"


def documents(ids: Sequence[str], text: str = "some text") -> pa.Table:
    columns = {
        "id": list(ids),
        "text": [f"{text} of {id}" for id in ids],
        "source": ["test"] * len(ids),
        "source_file": ["part.jsonl"] * len(ids),
        "source_offset": list(range(len(ids))),
    }
    return pa.table(columns, schema=DOCUMENT)


def target(lake: Lake, name: str = NAME) -> None:
    create_target(lake, name, Contract(DOCUMENT))


def staged(lake: Lake, *ids: str, name: str = NAME) -> list[StagedFragment]:
    """One fragment for each id."""
    return [fragment for id in ids for fragment in stage(lake, name, documents([id]))]


def ids_in(lake: Lake, ref: str = NAME) -> list[str]:
    """The ids of the version, in its order."""
    ids: list[str] = open_version(lake, ref).to_table(columns=["id"])["id"].to_pylist()
    return ids


def files_of(fragments: Sequence[StagedFragment]) -> frozenset[str]:
    return frozenset(file.path for fragment in fragments for file in fragment.files)


def lost(kind: str, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows of a rejects or quarantine dataset; what is not given is null."""
    schema = REJECTS if kind == "rejects" else QUARANTINE
    return pa.Table.from_pylist(list(rows), schema=schema)


def process(work: Callable[..., object], *arguments: Any, fault: str | None = None) -> multiprocessing.Process:
    """Start `work` in a fresh process, with this fault in its environment."""
    started = multiprocessing.get_context("spawn").Process(target=_with_fault, args=(fault, work, arguments))
    started.start()
    return started  # type: ignore[return-value]  # a SpawnProcess, of the same surface


def ended(child: multiprocessing.Process, timeout_seconds: float = 60.0) -> int | None:
    """Its exit code; a process that hangs is ended and gives None."""
    child.join(timeout_seconds)
    code = child.exitcode
    if code is None:
        child.kill()
        child.join()
    child.close()
    return code


def _with_fault(fault: str | None, work: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    if fault is not None:
        os.environ[VARIABLE] = fault
    work(*arguments)
