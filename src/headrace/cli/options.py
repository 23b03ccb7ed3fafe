"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.invocation import Invocation
from headrace.cli.output import Output

if TYPE_CHECKING:
    from headrace.storage.lake import Lake

LakeOption = Annotated[
    str | None,
    typer.Option("--lake", metavar="URI", help="Lake: a folder or s3://...; else HEADRACE_LAKE, else ./lake."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout and nothing else there.")]
CpusOption = Annotated[
    int | None, typer.Option("--cpus", min=1, metavar="N", help="Threads, or CPUs of our own Ray; else all of them.")
]


class EngineName(StrEnum):
    """Executors by name."""

    auto = "auto"
    local = "local"
    ray = "ray"


EngineOption = Annotated[
    EngineName, typer.Option("--engine", help="auto takes Ray where the input is large or a step needs a GPU.")
]


def call_of(context: typer.Context) -> Invocation:
    """The call that this command belongs to."""
    call = context.find_object(Invocation)
    return call if call is not None else Invocation()


def open_lake(context: typer.Context, uri: str | None, output: Output) -> Lake:
    """Resolve the lake and say which it is; nothing is created."""
    from headrace.storage.lake import Lake

    lake = Lake.resolve(uri)
    call_of(context).lake = uri or ""
    output.lake(lake.uri)
    return lake
