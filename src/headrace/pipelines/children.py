"""Child processes that may die: a server imports everything once and forks one for each order.

1. The server runs no rows and builds nothing, so that it starts no threads that a fork would lose.
2. A child works through its inputs in order and leaves a result for each; a result is whole or not there.
3. A child that raises leaves its error, which the parent raises; only a death after the first input was reached
   counts against rows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

import pyarrow as pa

from headrace import errors
from headrace.errors import HeadraceError, InternalError
from headrace.operators.resolve import operator_class
from headrace.pipelines import chain
from headrace.pipelines.describe import describe_unit, unit_of
from headrace.pipelines.envelope import seal, unseal
from headrace.pipelines.plan import Unit
from headrace.pipelines.tables import table_from_bytes, table_to_bytes
from headrace.pipelines.task import (
    BuiltStep,
    SegmentTask,
    StepTask,
    build_keys,
    build_reader,
    build_steps,
    check_code,
    extend_search_path,
)

READY = "ready"
Mode = Literal["read", "stage"]


class Children:
    """The parent's end of a server."""

    def __init__(self, task: SegmentTask, server: subprocess.Popen[str]) -> None:
        """Made by `children_of`."""
        self._task, self._server = task, server

    def read(self, unit: Unit) -> tuple[chain.UnitState | None, str]:
        """Read a unit; None where the child died, and how it ended."""
        (found,), how = self._order("read", [describe_unit(unit).encode()], ())
        return found, how

    def run(self, steps: tuple[StepTask, ...], tables: list[pa.Table]) -> tuple[list[chain.UnitState | None], str]:
        """Run the steps over each table; results up to the death of the child, None for the rest."""
        return self._order("stage", [table_to_bytes(table) for table in tables], steps)

    def _order(
        self, mode: Mode, inputs: list[bytes], steps: tuple[StepTask, ...]
    ) -> tuple[list[chain.UnitState | None], str]:
        with tempfile.TemporaryDirectory(prefix="headrace-isolated-") as name:
            folder = Path(name)
            order = {"mode": mode, "steps": [step.index for step in steps], "inputs": len(inputs)}
            (folder / "order.json").write_text(json.dumps(order), encoding="utf-8")
            for number, body in enumerate(inputs):
                (folder / f"{number}.in").write_bytes(body)
            how = self._fork(folder)
            if (told := folder / "error.json").exists():
                raise _error(json.loads(told.read_text(encoding="utf-8")))
            if not (folder / READY).exists():
                rule = "a child must come to its first row: imports and build() are no row's fault"
                raise InternalError(
                    f"isolated {mode} of {self._task.source.op}", how, rule, "see what it wrote to stderr"
                )
            results: list[chain.UnitState | None] = []
            for number in range(len(inputs)):
                path = folder / f"{number}.out"
                results.append(unseal(table_from_bytes(path.read_bytes())) if path.exists() else None)
        return results, how

    def _fork(self, folder: Path) -> str:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        try:
            self._server.stdin.write(f"{folder}\n")
            self._server.stdin.flush()
            status = int(self._server.stdout.readline() or "bad")
        except (OSError, ValueError) as error:
            got = f"exit code {self._server.wait()}"
            rule = "the server of children must live"
            raise InternalError("isolated children", got, rule, "see what it wrote to stderr") from error
        return f"signal {-status}" if status < 0 else f"exit code {status}"


@contextmanager
def children_of(task: SegmentTask) -> Iterator[Children]:
    """Start a server for a task; it ends with the block."""
    server = subprocess.Popen(
        [sys.executable, "-m", "headrace.pipelines.children"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        with suppress(OSError):  # a server that died is told by the first order
            server.stdin.write(task.to_json() + "\n")
        yield Children(task, server)
    finally:
        with suppress(OSError):
            server.stdin.close()
        server.stdout.close()
        server.wait()


def _error(told: dict[str, str]) -> HeadraceError:
    kind = getattr(errors, told.pop("kind"), errors.InternalError)
    found: HeadraceError = kind(**told)
    return found


def _serve(orders: IO[str], answers: IO[str]) -> None:
    """Fork a child for each folder that comes in, tell how it ended."""
    task = SegmentTask.from_json(orders.readline())
    extend_search_path(task.search_path)
    barrier = (task.barrier,) if task.barrier else ()
    for step in (task.source, *(step for stage in task.stages for step in stage), *barrier):
        operator_class(step.op)  # imports its module
    for line in orders:
        with warnings.catch_warnings():
            # Lance tells whoever forks with it imported.  This process opens no dataset (rule 1), so that a child finds
            # no handle of its parent to use; the filter stands here since an operator's module may set filters too.
            warnings.filterwarnings("ignore", "lance is not fork-safe")
            child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the orders are the server's
            _child(task, Path(line.rstrip("\n")))
        _, status = os.waitpid(child, 0)
        answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
        answers.flush()


def _child(task: SegmentTask, folder: Path) -> None:
    code = 1
    try:
        _work(task, folder)
        code = 0
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent raises it; only a death counts against rows
        known = isinstance(error, HeadraceError)
        told = {name: str(getattr(error, name, "")) for name in ("place", "got", "rule", "fix")}
        parts = told if known else {"place": "isolated child", "got": f"{type(error).__name__}: {error}"}
        body = {"kind": type(error).__name__ if known else "InternalError", **parts}
        (folder / "error.json").write_text(json.dumps(body), encoding="utf-8")
    finally:  # also where an operator raises SystemExit: the server's loop must not go on in here
        os._exit(code)


def _work(task: SegmentTask, folder: Path) -> None:
    check_code(task)
    order = json.loads((folder / "order.json").read_text(encoding="utf-8"))
    steps = build_steps(tuple(s for stage in task.stages for s in stage if s.index in order["steps"]))
    barrier = task.barrier if task.barrier and task.barrier.index in order["steps"] else None
    keys = BuiltStep(barrier, build_keys(barrier)) if barrier else None
    read = build_reader(task.source) if order["mode"] == "read" else None
    (folder / READY).touch()
    for number in range(order["inputs"]):
        body = (folder / f"{number}.in").read_bytes()
        if read is not None:
            state = chain.read_unit(task, read, unit_of(body.decode()))
        elif keys is not None:
            state = chain.keys_of(table_from_bytes(body), keys, task.run)
        else:
            state = chain.run_stage(chain.UnitState(0, table_from_bytes(body)), steps, task.run)
        partial = folder / f"{number}.partial"
        partial.write_bytes(table_to_bytes(seal(state)))
        partial.rename(folder / f"{number}.out")


if __name__ == "__main__":
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an operator prints is no answer
    _serve(sys.stdin, replies)
