"""Drives runs in processes of their own, kills them, and reads what they published without the code under test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import lance
import psutil
import yaml

from tests.pipelines.corpus import MIN_CHARS, UNIT_BYTES, Expected, write_docs

REPOSITORY = Path(__file__).resolve().parent.parent.parent
LIMIT_SECONDS = 100.0
"""A run that takes longer hangs; it is killed and fails its test."""


def steps(*middle: dict[str, Any], min_chars: int = MIN_CHARS) -> list[dict[str, Any]]:
    """The standard pipeline: reader, normalize, a user's operator, further ones, a global step, length."""
    return [
        {"op": "read.jsonl", "root": "in"},
        {"op": "text.normalize"},
        {"op": "tests.pipelines.operators:Refuse"},
        *middle,
        {"op": "dedup.exact"},
        {"op": "text.length", "min_chars": min_chars},
    ]


@dataclass(frozen=True)
class Ended:
    """How one process ended, and what its run told where it came to an end."""

    exit: int
    told: dict[str, Any]
    stderr: str
    left: tuple[int, ...]  # descendants that it had when it was killed

    @property
    def was_killed(self) -> bool:
        return self.exit == -signal.SIGKILL

    def __getattr__(self, name: str) -> Any:
        if name not in self.told:
            raise AssertionError(f"the run told no {name}: exit {self.exit}, {self.told}, {self.stderr[-4000:]}")
        return self.told[name]


@dataclass
class Site:
    """A folder with input, pipeline file and lake."""

    folder: Path
    zygote: Zygote
    output: str = "made/out"
    orders: int = 0

    @property
    def input(self) -> Path:
        return self.folder / "in"

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    def write_pipeline(self, listed: Sequence[dict[str, Any]], file: str = "p.yaml", **head: Any) -> None:
        """Write a pipeline file; `head` replaces or adds keys beside `steps`."""
        plain = {"pipeline": "made", "output": self.output, "channel": "prod", "unit_bytes": UNIT_BYTES, **head}
        plain["steps"] = list(listed)
        (self.folder / file).write_text(yaml.safe_dump(plain, sort_keys=False), encoding="utf-8")

    def order(self, **given: Any) -> dict[str, Any]:
        """One order for the zygote."""
        self.orders += 1
        known: dict[str, Any] = {
            "lake": str(self.lake),
            "folder": str(self.folder),
            "spec": "p.yaml",
            "engine": "local",
            "cpus": 1,
            "overrides": [],
            "fresh": "",
            "resume": "",
            "accept": [],
            "verify": "",
            "then": [],
            "env": {},
            "marker": "",
            "after": "",
            "steal": "",
            "kill_after": None,
            "limit": LIMIT_SECONDS,
            "result": str(self.folder / f"result-{self.orders}.json"),
            "stderr": str(self.folder / f"stderr-{self.orders}.txt"),
        }
        if unknown := given.keys() - known.keys() - {"fault"}:
            raise TypeError(f"no such order: {unknown}")
        if fault := given.pop("fault", ""):
            given["env"] = {**given.get("env", {}), "HEADRACE_FAULT": fault}
        return known | given

    def run(self, **given: Any) -> Ended:
        """Run in a process of its own, and wait for its end."""
        (ended,) = self.zygote.perform([self.order(**given)])
        return ended

    def start(self, **given: Any) -> Started:
        """Run in a process of its own, without waiting for its end."""
        return self.zygote.start([self.order(**given)])

    def together(self, *orders: dict[str, Any]) -> list[Ended]:
        """Several at once."""
        return self.zygote.perform([self.order(**order) for order in orders])

    def objects(self, prefix: str) -> list[Path]:
        """Small objects of the lake below a prefix, sorted."""
        place = self.lake / "_headrace" / prefix
        return sorted(path for path in place.rglob("*") if path.is_file()) if place.exists() else []

    def finished_units(self) -> tuple[set[int], set[int]]:
        """Units that have a record: of all segments before a global step, and of all last segments."""
        first = {int(path.name.split(".")[0]) for path in self.objects("work") if path.parent.name == "units"}
        last = {int(path.name.split(".")[0]) for path in self.objects("runs") if path.parent.name == "units"}
        return first, last

    def rows(self, name: str = "", version: int | None = None) -> list[dict[str, Any]]:
        """All rows of the output, or of `output + name`."""
        place = self.lake / f"{self.output}{name}.lance"
        rows: list[dict[str, Any]] = lance.dataset(str(place), version=version).to_table().to_pylist()
        return rows

    def columns(self) -> list[str]:
        """Columns of the output."""
        names: list[str] = lance.dataset(str(self.lake / f"{self.output}.lance")).schema.names
        return names

    def verify(self, run: str) -> list[dict[str, Any]]:
        """What a recount of a published run finds wrong."""
        ended = self.run(verify=run)
        return [check for check in ended.checks if check["passed"] is False]

    def found(self, run: str) -> Expected:
        """What the lake holds, in the form of the expectation: kept rows of the head, and what that run dropped."""
        kept = sorted((row["id"], row["text"]) for row in self.rows())
        rejects = [(r["id"], r["step"], r["rule"], r["partner"]) for r in self.rows(".rejects") if r["run"] == run]
        broken = [(r["source_file"], r["step"]) for r in self.rows(".quarantine") if r["run"] == run]
        return Expected(kept, sorted(rejects), sorted(broken))

    def lineage(self) -> list[dict[str, Any]]:
        """Rows of the lineage of the output, ordered by version."""
        place = self.lake / "_lineage.lance"
        if not place.exists():
            return []
        rows = [row for row in lance.dataset(str(place)).to_table().to_pylist() if row["dataset"] == self.output]
        return sorted(rows, key=lambda row: row["version"])

    def channel(self, name: str = "prod") -> tuple[int | None, int | None]:
        """Where the channel points: by its chain of moves, and by the Lance tag."""
        moves = self.objects(f"channels/{self.output}/{name}")
        last = max(moves, key=lambda path: int(path.stem), default=None)
        tags = lance.dataset(str(self.lake / f"{self.output}.lance")).tags.list()
        return (json.loads(last.read_text())["to"] if last else None), (tags[name]["version"] if name in tags else None)


@dataclass(frozen=True)
class Started:
    """A process that goes on while the test does something."""

    zygote: Zygote
    orders: list[dict[str, Any]]
    pids: list[int]

    def wait_for(self, marker: Path) -> None:
        """Wait until the process has made a file."""
        until = time.monotonic() + LIMIT_SECONDS
        while not marker.exists():
            assert time.monotonic() < until, f"{marker} did not appear"
            time.sleep(0.01)

    def kill(self) -> Ended:
        """Kill the only process with its process group."""
        (pid,) = self.pids
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            below = [child.pid for child in psutil.Process(pid).children(recursive=True)]
            os.killpg(pid, signal.SIGKILL)
            return replace(self.end(), left=tuple(below))
        return self.end()

    def end(self) -> Ended:
        """Wait for the end."""
        (ended,) = self.zygote.collect(self.orders)
        return ended


@dataclass
class Zygote:
    """A process that has everything imported and forks for each order."""

    process: subprocess.Popen[str]
    answers: IO[str] = field(init=False)
    wishes: IO[str] = field(init=False)

    def __post_init__(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdin is not None
        self.answers, self.wishes = self.process.stdout, self.process.stdin
        assert self.answers.readline() == "ready\n"

    def perform(self, orders: Sequence[dict[str, Any]]) -> list[Ended]:
        """Carry out all orders at once, and wait for all of them."""
        return self.collect(self.start(orders).orders)

    def start(self, orders: Sequence[dict[str, Any]]) -> Started:
        """Start all orders; `collect` must follow before the next ones."""
        self.wishes.write(json.dumps(list(orders)) + "\n")
        self.wishes.flush()
        return Started(self, list(orders), json.loads(self.answers.readline()))

    def collect(self, orders: Sequence[dict[str, Any]]) -> list[Ended]:
        """Wait for the orders that were started last."""
        ends = json.loads(self.answers.readline())
        found = []
        for order, end in zip(orders, ends, strict=True):
            result, stderr = Path(order["result"]), Path(order["stderr"])
            told = json.loads(result.read_text()) if result.exists() else {}
            text = stderr.read_text(errors="replace") if stderr.exists() else ""
            found.append(Ended(end["exit"], told, text, tuple(end["left"])))
        return found


@contextmanager
def zygote() -> Iterator[Zygote]:
    """Start one; it ends with the block."""
    # One thread only before the fork: no allocator or BLAS threads.
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
    command = [sys.executable, "-P", "-m", "tests.pipelines.zygote"]
    env["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), *filter(None, [env.get("PYTHONPATH")])])
    env["PYTHONWARNINGS"] = "ignore:lance is not fork-safe:UserWarning"  # it is before its first use
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    try:
        yield Zygote(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=30)
        assert process.stdout is not None
        process.stdout.close()


def make_site(
    folder: Path, process: Zygote, docs: Iterable[Any], listed: Sequence[dict[str, Any]] | None = None
) -> Site:
    """A site with documents and the standard pipeline."""
    folder.mkdir(parents=True, exist_ok=True)
    site = Site(folder, process)
    write_docs(site.input, list(docs))
    site.write_pipeline(steps() if listed is None else listed)
    return site


def check_published(site: Site, ended: Ended, expected: Expected) -> None:
    """Everything that must hold after a run that published: rows, one lineage row a version, channel."""
    assert ended.exit == 0, ended
    assert ended.status in {"published", "already published"}
    found = site.found(ended.run)
    assert found.kept == expected.kept
    assert found.rejects == expected.rejects
    assert found.quarantine == expected.quarantine
    told = [(row["version"], row["run"]) for row in site.lineage()]
    assert told.count((ended.version, ended.run)) == 1
    assert len(told) == len(set(told))
    assert site.channel() == (ended.version, ended.version)
