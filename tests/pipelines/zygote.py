"""Forks a process for each order on stdin: a run costs no imports, and can be killed like any other process.

Started by `driving.Zygote`.  One JSON line in: a list of orders.  Two lines out: the pids, and later how each ended.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import psutil

import headrace.pipelines.run as running
from headrace.errors import HeadraceError
from headrace.operators.resolve import operator_class
from headrace.operators.shapes import Global, Map
from headrace.pipelines.load import load_pipeline
from headrace.pipelines.progress import Silent
from headrace.pipelines.verify import verify_run
from headrace.storage import faults
from headrace.storage.contract import DOCUMENT
from headrace.storage.lake import Lake


class Log(Silent):
    """Keeps what the run told."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.segments: list[tuple[int, int, int]] = []
        self.units: list[tuple[int, int]] = []

    def planned(self, run: str, segment: int, segments: int, units: int, finished: int, size_bytes: int) -> None:
        self.segments.append((segment, units, finished))

    def unit_done(self, segment: int, record: Any) -> None:
        self.units.append((segment, record.unit))

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def perform(order: dict[str, Any]) -> dict[str, Any]:
    """Run or resume as ordered; what came of it as plain values."""
    log = Log()
    if order["verify"]:
        return verify_run(Lake.resolve(order["lake"]), order["verify"]).to_dict()
    common: dict[str, Any] = {"lake": order["lake"], "engine": order["engine"], "cpus": order["cpus"], "progress": log}
    try:
        if order["resume"]:
            done = running.resume(order["resume"], accept_code_change=order["accept"], **common)
        else:
            spec = load_pipeline(order["spec"], order["overrides"])
            done = running.run(spec, fresh=order["fresh"], **common)
    except HeadraceError as error:
        return {"error": type(error).__name__, "text": str(error), **vars(log)}
    return {
        "status": done.status,
        "run": done.run,
        "version": done.version,
        "report": done.report,
        "compared": done.compared,
        **vars(log),
    }


def _announce_pauses(marker: str) -> None:
    """Touch a file when a fault's pause begins, and end it when `<file>.over` appears: no test need guess a time."""
    sleep = time.sleep

    class Clock:
        @staticmethod
        def sleep(seconds: float) -> None:
            Path(marker).touch()
            until = time.monotonic() + seconds
            while not Path(f"{marker}.over").exists() and time.monotonic() < until:
                sleep(0.01)

    vars(faults)["time"] = Clock


def _child(order: dict[str, Any]) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    stderr = os.open(order["stderr"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(null, 0)
    os.dup2(stderr, 1)
    os.dup2(stderr, 2)
    os.chdir(order["folder"])
    sys.path.insert(0, os.getcwd())
    os.environ.update(order["env"])
    if order["marker"]:
        _announce_pauses(order["marker"])
    if order["after"]:
        while not os.path.exists(order["after"]):
            time.sleep(0.01)
    if order["steal"]:  # as if the holder's lease had run out
        shutil.rmtree(Path(order["lake"]) / "_headrace" / "leases")
        Path(order["steal"]).touch()
    result = Path(order["result"])
    partial = result.with_suffix(".partial")
    told = perform(order)
    if order["then"]:  # once more in this very process, with other files
        for source, place in order["then"]:
            shutil.copy(source, place)
        told["then"] = perform(order)
    told["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    partial.write_text(json.dumps(told), encoding="utf-8")
    partial.rename(result)
    if order["after"]:
        Path(f"{order['after']}.over").touch()


def _start(order: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        _child(order)
        os._exit(0)
    finally:  # whatever it raised: the loop of the zygote must not go on in here
        traceback.print_exc()
        os._exit(1)


def _kill(pid: int) -> list[int]:
    """Kill the process and its group at once; the pids of its descendants, some of which may live on."""
    below = [child.pid for child in psutil.Process(pid).children(recursive=True)]
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:  # not a session of its own yet
        os.kill(pid, signal.SIGKILL)
    return below


def _wait(pids: list[int], limits: list[float]) -> list[dict[str, Any]]:
    until = {pid: time.monotonic() + seconds for pid, seconds in zip(pids, limits, strict=True)}
    ends: dict[int, dict[str, Any]] = {}
    below: dict[int, list[int]] = {}
    while until:
        for pid, when in list(until.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                ends[pid] = {"exit": os.waitstatus_to_exitcode(status), "left": below.get(pid, [])}
                del until[pid]
            elif time.monotonic() > when and pid not in below:
                below[pid] = _kill(pid)
        time.sleep(0.002)
    return [ends[pid] for pid in pids]


def _warm_up() -> None:
    """Load what every run loads, numba's kernels among them, and stay single-threaded: only so may a process fork."""
    for op, params in (
        ("read.jsonl", {"root": "."}),
        ("text.normalize", {}),
        ("dedup.exact", {}),
        ("text.length", {"min_chars": 1}),
    ):
        operator = operator_class(op).model_validate(params)
        if isinstance(operator, Map | Global):
            operator.build()(DOCUMENT.empty_table())
    threads = os.listdir("/proc/self/task")
    if len(threads) > 1:
        raise RuntimeError(f"{len(threads)} threads before the first fork")


def main() -> None:
    _warm_up()
    print("ready", flush=True)  # noqa: T201 - the pipe to the tests
    for line in sys.stdin:
        orders = json.loads(line)
        pids = [_start(order) for order in orders]
        print(json.dumps(pids), flush=True)  # noqa: T201 - the pipe to the tests
        ends = _wait(pids, [order["kill_after"] or order["limit"] for order in orders])
        print(json.dumps(ends), flush=True)  # noqa: T201 - the pipe to the tests


if __name__ == "__main__":
    main()
