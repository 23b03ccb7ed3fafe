"""The stored plans: how the input is cut into units, and what a run will do.

Both are create-only objects.  Whoever comes second, or comes back after a crash with other settings, reads what is
stored: cutting the same input again with another unit size would publish some rows twice and others never.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from headrace.errors import DatasetNotFound
from headrace.operators.shapes import InputFile, InputPart, Reader
from headrace.pipelines.manifest import Manifest
from headrace.storage.objects import ObjectStore


def schema_to_text(schema: pa.Schema) -> str:
    """A schema as text, exact to metadata and nullability."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def schema_from_text(text: str) -> pa.Schema:
    """The inverse of `schema_to_text`."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


@dataclass(frozen=True)
class Unit:
    """The atom of work: one or more parts of the input, read in order."""

    number: int
    parts: tuple[InputPart, ...]

    @property
    def size_bytes(self) -> int:
        """About how much input this is."""
        return sum(part.size_bytes for part in self.parts)


@dataclass(frozen=True)
class UnitPlan:
    """How one input is cut; shared by all runs that read it through the same first segment."""

    schema: pa.Schema  # of what the reader emits
    units: tuple[Unit, ...]

    def to_json(self) -> bytes:
        """Files are named once and parts point to them by number."""
        files = list(dict.fromkeys(part.file for unit in self.units for part in unit.parts))
        number = {file: i for i, file in enumerate(files)}
        units = [[[number[p.file], p.start, p.stop, p.size_bytes] for p in unit.parts] for unit in self.units]
        plain = {"schema": schema_to_text(self.schema), "files": [dataclasses.asdict(f) for f in files], "units": units}
        return json.dumps(plain).encode()

    @classmethod
    def from_json(cls, body: bytes) -> UnitPlan:
        """The inverse of `to_json`."""
        plain = json.loads(body)
        files = [InputFile(**file) for file in plain["files"]]
        units = tuple(
            Unit(number, tuple(InputPart(files[f], start, stop, size) for f, start, stop, size in parts))
            for number, parts in enumerate(plain["units"])
        )
        return cls(schema_from_text(plain["schema"]), units)


def cut_units(reader: Reader, manifest: Manifest, unit_bytes: int) -> tuple[Unit, ...]:
    """Cut the files into parts, and join small neighbours until a unit holds about `unit_bytes`."""
    units: list[Unit] = []
    for parts in _fill(reader, manifest, unit_bytes):
        units.append(Unit(len(units), tuple(parts)))
    return tuple(units)


def _fill(reader: Reader, manifest: Manifest, unit_bytes: int) -> Iterator[list[InputPart]]:
    waiting: list[InputPart] = []
    held = 0
    for file in manifest.files:
        for part in reader.parts(file, unit_bytes):
            if waiting and held + part.size_bytes > unit_bytes:
                yield waiting
                waiting, held = [], 0
            waiting.append(part)
            held += part.size_bytes + 512  # an empty file costs time too
    if waiting:
        yield waiting


def stored_unit_plan(objects: ObjectStore, key: str, reader: Reader, manifest: Manifest, unit_bytes: int) -> UnitPlan:
    """The plan stored for this segment; made and stored now where there is none."""
    name = f"work/{key}/plan.json"
    if (stored := objects.get_or_none(name)) is not None:
        return UnitPlan.from_json(stored)
    plan = UnitPlan(reader.schema(list(manifest.files)), cut_units(reader, manifest, unit_bytes))
    objects.put_once(name, plan.to_json())
    return UnitPlan.from_json(objects.get(name))  # the first writer's, which need not be ours


@dataclass(frozen=True)
class RunPlan:
    """What a run will do, for whoever continues it."""

    run: str
    spec: dict[str, Any]  # Pipeline.to_mapping()
    segment_keys: tuple[str, ...]
    schemas: tuple[str, ...]  # what each segment emits, as text
    step_digests: tuple[str, ...]
    input_digest: str
    source_key: str  # names the contribution: pipeline and reader
    search_path: tuple[str, ...]  # where outside operators were found
    base_version: int  # the output's version when the run was planned
    fresh: str = ""
    created_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def to_json(self) -> bytes:
        """As JSON."""
        return json.dumps(dataclasses.asdict(self)).encode()

    @classmethod
    def from_json(cls, body: bytes) -> RunPlan:
        """The inverse of `to_json`."""
        plain = json.loads(body)
        for name in ("segment_keys", "schemas", "step_digests", "search_path"):
            plain[name] = tuple(plain[name])
        return cls(**plain)


def own_work(run: str, segment: int) -> str:
    """Object prefix of a segment's units that belong to one run alone."""
    return f"runs/{run}/segment-{segment}"


def run_plan_key(run: str) -> str:
    """Object key of a run's plan."""
    return f"runs/{run}/plan.json"


def load_run_plan(objects: ObjectStore, run: str) -> RunPlan:
    """The stored plan of a run.  Raises DatasetNotFound where there is no such run."""
    body = objects.get_or_none(run_plan_key(run))
    if body is None:
        known = sorted({o.key.split("/")[1] for o in objects.list("runs/") if o.key.endswith("/plan.json")})
        matches = [name for name in known if name.startswith(run)]
        if len(matches) == 1:
            return load_run_plan(objects, matches[0])
        if matches:
            rule = f"prefix is ambiguous: {', '.join(matches[:5])}{', ...' if len(matches) > 5 else ''}"
            raise DatasetNotFound(f"run {run}", "", rule, "give more of the run's id")
        told = ", ".join(known[-5:]) or "none yet"
        raise DatasetNotFound(f"run {run}", "", "no such run in this lake", f"runs here: {told}")
    return RunPlan.from_json(body)
