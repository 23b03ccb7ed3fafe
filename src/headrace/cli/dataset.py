"""`headrace dataset`: list, look, ask why, name versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.funnel import show_funnel
from headrace.cli.options import JsonOption, LakeOption, open_lake
from headrace.cli.output import Output, cell_text, count, shorten
from headrace.errors import DatasetNotFound, SpecError

if TYPE_CHECKING:
    from headrace.storage.channels import ChannelMove
    from headrace.storage.dataset import Dataset
    from headrace.storage.lake import Lake
    from headrace.storage.lineage import LineageRow

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Datasets of this lake: list, look, explain, tag.")

MOVES_SHOWN = 5
REASON_CHARS = 40

RefArgument = Annotated[str, typer.Argument(metavar="REF", help="name, name@12 or name@prod.")]


@app.command("ls")
def ls(
    context: typer.Context,
    is_all: Annotated[bool, typer.Option("--all", help="Also rejects and quarantine.")] = False,
    lake: LakeOption = None,
    is_json: JsonOption = False,
) -> None:
    """List the datasets with newest version, rows and channels."""
    output = Output(is_json)
    place = open_lake(context, lake, output)
    import headrace
    from headrace.storage.dataset import Dataset

    listed = place.names() if is_all else headrace.datasets(place)
    found = [Dataset.open(name, place) for name in listed]
    tags = {dataset.name: dataset.tags() for dataset in found}
    if found:
        rows = [[d.name, str(d.version), count(d.num_rows), _tags_text(tags[d.name])] for d in found]
        output.table(("dataset", "version", "rows", "channels and tags"), rows, ("version", "rows"))
    else:
        output.note("no datasets yet" if place.exists() else "there is no lake here yet; a run makes it")
    entries = [{"name": d.name, "version": d.version, "rows": d.num_rows, "tags": tags[d.name]} for d in found]
    output.result({"lake": place.uri, "exists": place.exists(), "datasets": entries})


@app.command("show")
def show(context: typer.Context, ref: RefArgument, lake: LakeOption = None, is_json: JsonOption = False) -> None:
    """Show a version: columns, rows, tags, and the run it came from with its funnel."""
    output = Output(is_json)
    place = open_lake(context, lake, output)
    dataset = _open(ref, place)
    tags, moves, lineage = dataset.tags(), dataset.moves(), _newest_lineage(place, dataset)
    output.line(f"{dataset.name}@{dataset.version}: {count(dataset.num_rows)} rows", "bold")
    output.line(dataset.uri)
    if tags:
        output.line(f"channels and tags: {_tags_text(tags)}")
    _show_moves(output, moves)
    output.table(("column", "type"), [[field.name, str(field.type)] for field in dataset.schema])
    if lineage is not None:
        when = lineage.published_at.isoformat(timespec="seconds")
        output.line()
        output.line(f"version {lineage.version}: published {when} by run {lineage.run}, pipeline {lineage.pipeline}")
        if lineage.report.get("steps"):
            show_funnel(output, lineage.report["steps"])
    columns = [{"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in dataset.schema]
    output.result(
        {
            "lake": place.uri,
            "name": dataset.name,
            "version": dataset.version,
            "uri": dataset.uri,
            "rows": dataset.num_rows,
            "columns": columns,
            "tags": tags,
            "moves": {channel: [vars(move) for move in listed] for channel, listed in moves.items()},
            "published": None if lineage is None else {**vars(lineage), "dataset": lineage.dataset},
        }
    )


@app.command("head")
def head(
    context: typer.Context,
    ref: RefArgument,
    n: Annotated[int, typer.Option("-n", "--rows", min=1, metavar="N", help="Number of rows.")] = 5,
    columns: Annotated[str | None, typer.Option("--columns", metavar="A,B", help="Only these columns.")] = None,
    lake: LakeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Show the first rows."""
    output = Output(is_json)
    place = open_lake(context, lake, output)
    dataset = _open(ref, place)
    wanted = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    rows = dataset.show(n, wanted)
    output.line(repr(rows))
    reference = {"name": dataset.name, "version": dataset.version}
    output.result({"lake": place.uri, **reference, "rows": rows.table.to_pylist() if is_json else []})


@app.command("log")
def log(
    context: typer.Context,
    ref: RefArgument,
    n: Annotated[int | None, typer.Option("-n", "--versions", min=1, metavar="N", help="Only the newest N.")] = None,
    lake: LakeOption = None,
    is_json: JsonOption = False,
) -> None:
    """List the versions, newest first."""
    output = Output(is_json)
    place = open_lake(context, lake, output)
    dataset = _open(ref, place)
    versions, moved = dataset.log(n), _moves_to(dataset.moves())
    rows = [
        [
            str(info.version),
            info.when.isoformat(timespec="seconds"),
            count(info.rows),
            info.run or "",
            ", ".join(info.tags),
            ", ".join([*([info.message] if info.message else []), *_reasons(moved.get(info.version, []))]),
        ]
        for info in versions
    ]
    output.table(("version", "when", "rows", "run", "channels and tags", "message"), rows, ("version", "rows"))
    entries = [{**vars(info), "moves": moved.get(info.version, [])} for info in versions]
    output.result({"lake": place.uri, "name": dataset.name, "versions": entries})


@app.command("why")
def why(
    context: typer.Context,
    ref: RefArgument,
    row_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="The row's id; without, an example.")] = None,
    lake: LakeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Explain one row: kept, dropped (rule, value, threshold, partner) or quarantined (error)."""
    output = Output(is_json)
    place = open_lake(context, lake, output)
    dataset = _open(ref, place)
    if row_id is None:
        from headrace.storage.example import example_id

        example = example_id(place, dataset.name, dataset.version)
        if example is None:
            fix = "give the ID of a row"
            raise DatasetNotFound(f"dataset {dataset.name}@{dataset.version}", "", "holds no row of a run", fix)
        row_id = example[1]
    explanation = dataset.why(row_id)
    output.line(explanation.text())
    output.result({"lake": place.uri, **explanation.to_dict()})
    if explanation.outcome == "unknown":
        raise typer.Exit(DatasetNotFound.exit_code)


@app.command("tag")
def tag(
    context: typer.Context,
    ref: RefArgument,
    name: Annotated[str, typer.Argument(metavar="TAG", help="The tag, or the channel to move.")],
    is_channel: Annotated[bool, typer.Option("--channel", help="Move a channel; needs --why.")] = False,
    reason: Annotated[str | None, typer.Option("--why", metavar="TEXT", help="Why the channel moves.")] = None,
    lake: LakeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Name a version for good, or move a channel to it (which is also how to roll back)."""
    output = Output(is_json)
    if is_channel and not (reason or "").strip():
        raise SpecError("--channel", "no --why", "every move of a channel says why", 'add --why "..."')
    if not is_channel and reason is not None:
        raise SpecError("--why", repr(reason), "only moves of channels have a reason", "add --channel, or leave it out")
    place = open_lake(context, lake, output)
    dataset = _open(ref, place)
    from headrace.storage.channels import channel_version, move_channel, set_tag

    before = channel_version(place, dataset.name, name) if is_channel else None
    if is_channel:
        move_channel(place, dataset.name, name, dataset.version, reason or "")
        moved = "" if before is None else f", before: {before}"
        output.line(f"channel {dataset.name}@{name} points to version {dataset.version}{moved}")
    else:
        set_tag(place, dataset.name, name, dataset.version)
        output.line(f"tag {dataset.name}@{name} names version {dataset.version}")
    kind = "channel" if is_channel else "tag"
    facts = {"name": dataset.name, "version": dataset.version, "before": before}
    output.result({"lake": place.uri, kind: name, **facts})


def _open(ref: str, lake: Lake) -> Dataset:
    from headrace.storage.dataset import Dataset

    return Dataset.open(ref, lake)


def _show_moves(output: Output, moves: Mapping[str, Sequence[ChannelMove]]) -> None:
    """The newest moves of each channel."""
    rows = [
        [channel, str(move.to), move.when.isoformat(timespec="seconds"), shorten(move.why), move.run or ""]
        for channel, listed in moves.items()
        for move in listed[:MOVES_SHOWN]
    ]
    if rows:
        output.table(("channel", "moved to", "when", "why", "run"), rows, ("moved to",))
        hidden = sum(len(listed[MOVES_SHOWN:]) for listed in moves.values())
        if hidden:
            output.line(f"{count(hidden)} earlier moves: --json has them all")
        output.line()


def _moves_to(moves: Mapping[str, Sequence[ChannelMove]]) -> dict[int, list[dict[str, Any]]]:
    """Which channels were moved to a version and why, newest first."""
    found: dict[int, list[dict[str, Any]]] = {}
    for channel, listed in moves.items():
        for move in listed:
            found.setdefault(move.to, []).append({"channel": channel, **vars(move)})
    return found


def _reasons(moves: Sequence[Mapping[str, Any]]) -> list[str]:
    """The newest move of each channel in a few words; a run's own reason is its id, which stands beside it."""
    newest: dict[str, str] = {}
    for move in moves:
        why = "published" if move["why"] == f"run {move['run']}" else shorten(move["why"], REASON_CHARS)
        newest.setdefault(move["channel"], f"{move['channel']}: {why}")
    return list(newest.values())


def _newest_lineage(lake: Lake, dataset: Dataset) -> LineageRow | None:
    """Who published this version, or the one that maintenance made it from."""
    from headrace.storage.lineage import lineage_of

    rows = [row for row in lineage_of(lake, dataset.name) if row.version <= dataset.version]
    return rows[-1] if rows else None


def _tags_text(tags: dict[str, int]) -> str:
    return ", ".join(f"{cell_text(tag)}@{version}" for tag, version in tags.items())
