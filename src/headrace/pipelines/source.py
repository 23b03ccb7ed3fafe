"""What a run replaces: the rows that its pipeline published from the same source before.

A source is a pipeline and where its reader reads.  Of the runs of the same pipeline whose rows stand in the output,

1. one of the same source is replaced: the folder as it is now takes the place of the folder as it was;
2. one whose files are all read again is replaced, however the reader is spelt now;
3. one that read none of these files stays: the new rows come to it;
4. one that read some of these files and others besides is refused: to replace it would lose the others' rows, to keep
   it would double these.

Runs of other pipelines stay.  `write: append` replaces nothing, `write: replace` everything.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from headrace.errors import SpecError
from headrace.pipelines.digest import hash_json
from headrace.pipelines.manifest import Manifest
from headrace.pipelines.spec import Pipeline
from headrace.storage.lake import Lake
from headrace.storage.lineage import live, publications
from headrace.storage.objects import ObjectStore

_WHERE = {"root", "lake"}
"""Parameters that say where in words that may change; the files' own roots say it for good."""


@dataclass(frozen=True)
class Source:
    """A run's source, and the files that it reads there."""

    key: str
    places: frozenset[str]


def source_of(pipeline: Pipeline, manifest: Manifest, run: str) -> Source:
    """The source of a run that is being planned."""
    reader, files = pipeline.reader, list(manifest.files)
    places = frozenset(reader.place(file) for file in files)
    if pipeline.write == "append":
        return Source(f"run:{run}", places)
    told = {key: value for key, value in pipeline.to_mapping()["steps"][0].items() if key not in _WHERE}
    return Source(f"{pipeline.pipeline}:{hash_json([told, reader.origins(files)])[:16]}", places)


def _key(run: str) -> str:
    return f"runs/{run}/source.json"


def store_source(objects: ObjectStore, run: str, source: Source) -> None:
    """Keep it for the runs that come after."""
    objects.put_once(_key(run), json.dumps({"key": source.key, "places": sorted(source.places)}).encode())


def stored_source(objects: ObjectStore, run: str) -> Source:
    """The source of a planned run."""
    plain = json.loads(objects.get_or_none(_key(run)) or b'{"key": "", "places": []}')
    return Source(plain["key"], frozenset(plain["places"]))


def replaced_runs(lake: Lake, pipeline: Pipeline, run: str, source: Source, version: int) -> set[str]:
    """Runs standing in this version of the output that the run replaces.  Raises SpecError for case 4."""
    if pipeline.write == "append":
        return set()
    standing = [p for p in live(publications(lake, pipeline.output, version)) if p.run != run]
    if pipeline.write == "replace":
        return {publication.run for publication in standing}
    replaced = set()
    for publication in standing:
        if publication.pipeline != pipeline.pipeline:
            continue
        old = (
            frozenset[str]()
            if publication.source == source.key
            else stored_source(lake.objects, publication.run).places
        )
        common = old & source.places
        if publication.source == source.key or (common and old == common):
            replaced.add(publication.run)
        elif common:
            others = len(old - common)
            got = f"{len(common)} files that run {publication.run} read too, without {others} others that it read"
            rule = "a run replaces what its pipeline published from the same files, and must not lose or double any"
            fix = "read them all, or say write: replace (only this run's rows stay) or write: append (both stay)"
            raise SpecError(f"dataset {pipeline.output}", got, rule, fix)
    return replaced
