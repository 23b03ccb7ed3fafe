"""How fast a pipeline runs from files to a published version, and what a kill costs.

Runs read.jsonl -> text.normalize -> text.language -> text.gopher_quality -> dedup.exact over the given JSONL files and
publishes to a fresh lake; then does the same again, kills the driver after about 60 % of the units, starts it again,
and has the kernel count how often the input of finished units is opened.  The two results must be equal, row for row,
and pass verification, or there are no numbers.  Takes about three times as long as one run.  Nobody else may open the
input meanwhile: the kernel does not tell who did.

    python benchmarks/pipeline.py --input shards/ --output /tmp/bench
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from machine import machine
from opened_files import OpenedFiles

ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst")
KILL_AT_FRAC = 0.6
OPS = ("text.normalize", "text.language", "text.gopher_quality", "dedup.exact")


def main() -> int:
    """Parse arguments, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", nargs="+", type=Path, help="JSONL files (plain, .gz, .zst), or folders of them")
    parser.add_argument("--output", type=Path, help="folder for lakes and pipeline file; new or empty")
    parser.add_argument("--engine", choices=["ray", "local"], default="ray")
    parser.add_argument("--cpus", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--unit-bytes", type=int, default=8 << 20)
    parser.add_argument("--text-column", default="text", help="key with the text")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout instead of the table")
    given = parser.parse_args()
    if not given.input or not given.output:
        parser.error("--input and --output are required")
    files = _files_of(given.input)
    if not files:
        parser.error(f"no {', '.join(ENDINGS)} files in {', '.join(map(str, given.input))}")
    given.output.mkdir(parents=True, exist_ok=True)
    if any(given.output.iterdir()):
        parser.error(f"--output {given.output} is not empty")
    measured = measure(files, given.output, given)
    print(json.dumps(measured, indent=1) if given.json else _table(measured))
    return 0


def measure(files: list[Path], output: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Everything, in one mapping."""
    spec = output / "pipeline.yaml"
    _write_spec(spec, files, given)
    rows, text_bytes = _size_of(files)  # also fills the page cache
    _warm_up(output, given)
    whole = _start(spec, output / "lake", given, output / "run.json")
    told = json.loads((output / "run.json").read_text("utf-8"))
    if told["rows_in"] != rows:
        sys.exit(f"wrong: {rows} lines in the files, {told['rows_in']} rows and errors read")
    resumed = _resume(spec, output, given, files, told)
    marks: dict[str, float] = told["marks"]
    seconds = told["seconds"]
    return {
        "rows_per_s": round(rows / seconds, 1),
        "mb_per_s": round(text_bytes / 1e6 / seconds, 2),
        "first_row_s": round(marks["first unit"], 3),
        **resumed,
        "engine": given.engine,
        "cpus": given.cpus,
        "files": len(files),
        "units": told["units"],
        "rows_in": rows,
        "rows": told["rows"],
        "input_bytes": sum(path.stat().st_size for path in files),
        "text_bytes": text_bytes,
        "seconds": round(seconds, 3),
        "process_seconds": round(whole, 3),
        "where": _where(marks, seconds),
        "funnel": told["funnel"],
        "machine": machine(),
        "versions": told["versions"],
    }


def _files_of(inputs: list[Path]) -> list[Path]:
    found: set[Path] = set()
    for path in inputs:
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        found |= {p.resolve() for p in inside if p.is_file() and p.name.endswith(ENDINGS)}
    return sorted(found)


def _write_spec(spec: Path, files: list[Path], given: argparse.Namespace) -> None:
    root = Path(os.path.commonpath([path.parent for path in files]))
    reader = {
        "op": "read.jsonl",
        "root": str(root),
        "include": [_literal(path.relative_to(root).as_posix()) for path in files],
        "text_column": given.text_column,
    }
    steps = [reader, *({"op": op} for op in OPS)]
    head = {"pipeline": "benchmark", "output": "benchmark", "unit_bytes": given.unit_bytes, "channel": "candidate"}
    spec.write_text(json.dumps({**head, "steps": steps}, indent=1), "utf-8")  # JSON is YAML


def _literal(name: str) -> str:
    """A glob that matches exactly this name."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _size_of(files: list[Path]) -> tuple[int, int]:
    """Lines that are not blank, and bytes of the decompressed files."""
    lines = total = 0
    for path in files:
        with _open(path) as handle:
            for line in io.BufferedReader(handle, 1 << 20):
                total += len(line)
                lines += not line.isspace()
    return lines, total


def _open(path: Path) -> Any:
    if path.suffix == ".gz":
        return gzip.open(path)
    if path.suffix == ".zst":
        import zstandard

        return zstandard.ZstdDecompressor().stream_reader(path.open("rb"), read_across_frames=True, closefd=True)
    return path.open("rb", buffering=0)


def _warm_up(output: Path, given: argparse.Namespace) -> None:
    """Compile the kernels into their cache, which a first run on a machine does once and for all."""
    folder = output / "warm-up"
    folder.mkdir()
    lines = [
        json.dumps({given.text_column: f"A few words to compile the kernels with, and number {n}."}) for n in range(9)
    ]
    (folder / "a.jsonl").write_text("\n".join(lines), "utf-8")
    _write_spec(folder / "pipeline.yaml", [folder / "a.jsonl"], given)
    calm = argparse.Namespace(**{**vars(given), "engine": "local"})
    _start(folder / "pipeline.yaml", folder / "lake", calm, folder / "run.json")


def _command(spec: Path, lake: Path, given: argparse.Namespace, report: Path) -> list[str]:
    child = Path(__file__).with_name("pipeline_child.py")
    return [sys.executable, *map(str, (child, spec, lake, report, given.engine, given.cpus))]


def _start(spec: Path, lake: Path, given: argparse.Namespace, report: Path) -> float:
    """One run in a process of its own; its seconds from start to exit."""
    clock = time.monotonic()
    done = subprocess.run(_command(spec, lake, given, report), check=False)
    if done.returncode:
        sys.exit(f"the run ended with {done.returncode}")
    return time.monotonic() - clock


def _resume(
    spec: Path, output: Path, given: argparse.Namespace, files: list[Path], whole: dict[str, Any]
) -> dict[str, Any]:
    """Kill a second run, start it again, and see what it reads and gives."""
    from headrace.pipelines.plan import UnitPlan, load_run_plan, run_plan_key
    from headrace.pipelines.records import finished_units
    from headrace.pipelines.verify import verify_run
    from headrace.storage.lake import Lake

    place, report = output / "lake-killed", output / "resumed.json"
    after = max(1, min(whole["units"] - 1, math.ceil(KILL_AT_FRAC * whole["units"])))
    environment = {**os.environ, "HEADRACE_FAULT": f"driver.after_unit:{after}"}
    killed = subprocess.Popen(_command(spec, place, given, report), env=environment, start_new_session=True)
    if killed.wait() != -signal.SIGKILL:
        sys.exit(f"the run that was to be killed ended with {killed.returncode}")
    _end_session(killed.pid)
    lake = Lake.resolve(str(place))
    if lake.objects.size_bytes(run_plan_key(whole["run"])) is None:
        sys.exit("the input or the code of a step changed between the two runs; nothing can be compared")
    plan = load_run_plan(lake.objects, whole["run"])
    work = f"work/{plan.segment_keys[0]}"
    units = UnitPlan.from_json(lake.objects.get(f"{work}/plan.json")).units
    finished = finished_units(lake.objects, work)
    with OpenedFiles(files) as opened:
        seconds = _start(spec, place, given, report)
        opens = opened.take()
    # An open more than the unfinished parts of a file need is taken for a finished part read again.
    done_bytes = reread_bytes = 0
    for path in files:
        parts = [(unit.number in finished, part) for unit in units for part in unit.parts if _path(part.file) == path]
        done = [part.size_bytes for is_finished, part in parts if is_finished]
        surplus = min(max(0, opens[path] - (len(parts) - len(done))), len(done))
        done_bytes += sum(done)
        reread_bytes += sum(sorted(done)[len(done) - surplus :])
    for folder, name in ((output / "lake", "undisturbed"), (place, "killed and resumed")):
        verification = verify_run(Lake.resolve(str(folder)), whole["run"])
        if not verification.ok or any(check.passed is None for check in verification.checks):
            sys.exit(f"wrong: the {name} run does not verify: {verification}")
    if _fingerprint(output / "lake") != _fingerprint(place):
        sys.exit("wrong: the resumed run published other rows than the undisturbed one")
    return {
        "resume_reread_frac": round(reread_bytes / done_bytes, 4) if done_bytes else 0.0,
        "resume_seconds": round(seconds, 3),
        "resume_finished_units": len(finished),
    }


def _path(file: Any) -> Path:
    return Path(file.root, file.path).resolve()


def _end_session(session: int) -> None:
    """Kill what the killed driver leaves behind, as a lost machine does; Ray's own take a minute to notice."""
    for _ in range(600):
        alive = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[3] == str(session) and fields[0] != "Z":
                alive.append(int(stat.parent.name))
        if not alive:
            return
        for process in alive:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.1)
    sys.exit("workers of the killed run do not end")


def _fingerprint(lake: Path) -> list[str]:
    """Of all three outputs, whatever the order of rows; run ids are equal as the work is."""
    from headrace.storage.lake import Lake
    from headrace.storage.open import open_version

    found = []
    for name in ("benchmark", "benchmark.rejects", "benchmark.quarantine"):
        total = 0
        for batch in open_version(Lake.resolve(str(lake)), name).to_batches():
            for row in batch.to_pylist():
                digest = hashlib.blake2b(json.dumps(row, default=str, sort_keys=True).encode(), digest_size=16).digest()
                total += int.from_bytes(digest, "little")
        found.append(f"{total:x}")
    return found


def _where(marks: dict[str, float], seconds: float) -> dict[str, float]:
    """Phase -> seconds; the phases follow each other and add up."""
    edges = [("planning", marks["segment 0"])]
    if "Ray is up" in marks:
        edges.append(("Ray start", marks["Ray is up"]))
    edges.append(("first unit", marks["first unit"]))
    edges.append(("other units of segment 0", marks["segment 0 done"]))
    edges.append(("selection", marks["segment 1"]))
    edges.append(("units of segment 1", marks["segment 1 done"]))
    edges.append(("ids, Ray stop" if "Ray is down" in marks else "ids", marks["publishing"]))
    edges.append(("publish", seconds))
    found, last = {}, 0.0
    for name, at in edges:
        found[name] = round(at - last, 3)
        last = at
    return found


def _table(m: dict[str, Any]) -> str:
    lines = [
        "{cpu}, {cores} cores, {memory_gib} GiB".format_map(m["machine"]),
        f"engine {m['engine']}, {m['cpus']} CPUs; {m['files']} files, {m['units']} units",
        "",
    ]
    facts = [
        ("rows", f"{m['rows_in']:,}", "in; " + ", ".join(f"{n:,} {name}" for name, n in m["rows"].items())),
        ("bytes", f"{m['text_bytes'] / 1e6:,.1f} MB", f"decompressed; {m['input_bytes'] / 1e6:,.1f} MB on disk"),
        ("seconds", f"{m['seconds']:.2f}", f"run(); {m['process_seconds']:.2f} with the interpreter"),
        ("rows/s", f"{m['rows_per_s']:,.0f}", ""),
        ("MB/s", f"{m['mb_per_s']:.2f}", "decompressed"),
        ("first_row_s", f"{m['first_row_s']:.2f}", "until the first finished unit"),
        *((f"  {name}", f"{seconds:.2f}", "s") for name, seconds in m["where"].items()),
        ("resume_s", f"{m['resume_seconds']:.2f}", f"after a kill with {m['resume_finished_units']} units finished"),
        ("resume_reread_frac", f"{m['resume_reread_frac']:.4f}", "bytes of finished units opened again"),
    ]
    lines += [f"{name:<26} {value:>14}  {note}".rstrip() for name, value, note in facts]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
