"""`headrace run` and `headrace resume`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.funnel import gates_line, show_funnel
from headrace.cli.options import CpusOption, EngineName, EngineOption, JsonOption, LakeOption, call_of, open_lake
from headrace.cli.output import Output, count, duration, shorten, size
from headrace.cli.progress import Lines, progress
from headrace.cli.search_path import extend_search_path
from headrace.errors import SpecError

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.pipelines.run import RunResult
    from headrace.storage.lake import Lake

PREVIEW_ROWS = 20


def run(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Pipeline file (YAML).")],
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Change a value of the file, as steps[1].min_words=10."),
    ] = None,
    engine: EngineOption = EngineName.auto,
    cpus: CpusOption = None,
    lake: LakeOption = None,
    fresh: Annotated[str, typer.Option("--fresh", metavar="REASON", help="Do all work again, and record why.")] = "",
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Rows of a preview (20 if not given).")
    ] = None,
    is_preview: Annotated[
        bool, typer.Option("--preview", help="Show what happens to the first rows; publish nothing.")
    ] = False,
    is_json: JsonOption = False,
) -> None:
    """Run a pipeline file until its output is published.

    What stopped it does not matter: the same command, or `headrace resume`, goes on from what is finished.
    """
    output, call = Output(is_json), call_of(context)
    if limit is not None and not is_preview:
        raise SpecError("--limit", str(limit), "a run takes all rows; --limit is for previews", "add --preview")
    if is_preview and fresh:
        raise SpecError("--fresh", repr(fresh), "a preview does no work that could be there already", "leave it out")
    extend_search_path(file)
    place = open_lake(context, lake, output)
    changes = overrides or []
    if is_preview:
        _preview(output, place, file, PREVIEW_ROWS if limit is None else limit, changes)
        return
    from headrace.pipelines.run import run as run_pipeline

    with progress(call) as tell:
        result = run_pipeline(
            file, lake=place, engine=engine.value, cpus=cpus, overrides=changes, fresh=fresh, progress=tell
        )
    again = " ".join(["headrace run", shlex.quote(file), *(f"--set {shlex.quote(change)}" for change in changes)])
    _show(output, place, result, tell, f"{again}{call.lake_option}")


def resume(
    context: typer.Context,
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="Run id, as `headrace runs ls` lists it.")],
    accept_code_change: Annotated[
        list[str] | None,
        typer.Option("--accept-code-change", metavar="OP", help="Go on although the code of this step changed."),
    ] = None,
    engine: EngineOption = EngineName.auto,
    cpus: CpusOption = None,
    lake: LakeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Continue a run that was stopped.

    Finished units are not read again.
    """
    output, call = Output(is_json), call_of(context)
    extend_search_path()
    place = open_lake(context, lake, output)
    call.run = run_id
    from headrace.pipelines.run import resume as resume_run

    with progress(call) as tell:
        result = resume_run(
            run_id,
            lake=place,
            engine=engine.value,
            cpus=cpus,
            accept_code_change=accept_code_change or [],
            progress=tell,
        )
    _show(output, place, result, tell, "")


def _show(output: Output, lake: Lake, result: RunResult, tell: Lines, again: str) -> None:
    from headrace.storage.channels import channel_version
    from headrace.storage.dataset import Dataset
    from headrace.storage.example import example_id

    channel, is_new = result.report.get("channel"), result.status == "published"
    at = channel_version(lake, result.output, channel) if channel else None
    newest = Dataset.open(result.output, lake).version
    rows = Dataset(lake, result.output, result.version).num_rows if is_new else None
    example, lake_option = example_id(lake, result.output, result.version), tell.call.lake_option
    command = f"headrace dataset why {result.reference} {shlex.quote(example[1])}{lake_option}" if example else None
    if rows is None:
        _show_standing(output, result, newest, at, again, lake_option)
    else:
        _show_published(output, result, rows, at, lake_option)
        output.line(_speed(tell))
    if command and example:
        output.line(f"why was a row {example[0]}?  {command}")
    output.result(
        {
            "lake": lake.uri,
            "run": result.run,
            "status": result.status,
            "output": result.output,
            "version": result.version,
            "reference": result.reference,
            "rows": rows,
            "newest_version": newest,
            "channel": {"name": channel, "version": at} if channel else None,
            "compared": result.compared,
            "seconds": round(tell.seconds, 3),
            "rows_read": tell.rows_read,
            "bytes_read": tell.bytes_read,
            "rows_per_second": round(tell.rows_read / tell.seconds, 3),
            "bytes_per_second": round(tell.bytes_read / tell.seconds, 1),
            "example": {"outcome": example[0], "id": example[1], "command": command} if example else None,
            "report": result.report,
        }
    )


def _show_published(output: Output, result: RunResult, rows: int, at: int | None, lake_option: str) -> None:
    """The funnel, and what the version holds: with `write: source` and `append` also the rows of other runs."""
    report = result.report
    if report.get("steps"):
        show_funnel(output, report["steps"])
    output.line(gates_line(report.get("gates", [])))
    own, channel = report["rows"]["kept"], ""
    if report.get("channel"):
        stays = "" if at == result.version else f" stays at @{at}"
        channel = f"; channel {report['channel']}{stays}"
    told = f"{_rows(rows)} in all, {count(own)} of this run{channel}"
    output.line(f"published {result.reference}: {told} (run {result.run})", "bold green")
    if renamed := report.get("renamed_ids"):
        output.line(f"{_rows(renamed)} repeated an id of the source and got id~suffix")
    if quarantined := report["rows"]["quarantine"]:
        look = f"headrace dataset head {result.output}.quarantine{lake_option}"
        output.line(f"{_rows(quarantined)} could not be processed; look: {look}")


def _show_standing(
    output: Output, result: RunResult, newest: int, at: int | None, again: str, lake_option: str
) -> None:
    """That nothing was to be done; and where newest version and channel are, if not at what this run published."""
    output.line(f"already published: {result.reference} (run {result.run}); compared:", "bold green")
    for what, value in result.compared.items():
        output.line(f"  {what}: {value}")
    if newest > result.version:
        output.line(f"newest version: {result.output}@{newest}")
    if at is not None and at != result.version:
        channel = result.report["channel"]
        move = f'headrace dataset tag {result.reference} {channel} --channel --why "reason"{lake_option}'
        output.line(f"{channel} is at @{at}, not moved; to move it: {move}")
    if again:
        output.line(f'to do it all again: {again} --fresh "reason"')


def _rows(number: int) -> str:
    return f"{count(number)} row{'' if number == 1 else 's'}"


def _speed(tell: Lines) -> str:
    if not tell.rows_read:
        return f"{duration(tell.seconds)}; all units were finished before"
    rows, num_bytes = tell.rows_read, tell.bytes_read
    rates = f"{count(round(rows / tell.seconds))} rows/s, {size(num_bytes / tell.seconds)}/s"
    return f"{duration(tell.seconds)}: {count(rows)} rows, {size(num_bytes)} read; {rates}"


def _preview(output: Output, lake: Lake, file: str, limit: int, changes: list[str]) -> None:
    from headrace.pipelines.preview import preview

    with lake.as_default():
        seen = preview(file, limit, changes)
    steps = [step.to_plain() for step in seen.steps]
    show_funnel(output, steps)
    for title, table, columns in (
        ("kept", seen.kept, ("id", "text")),
        ("dropped", seen.rejects, ("id", "op", "rule", "value", "threshold", "note", "partner", "text")),
        ("quarantined", seen.quarantine, ("id", "op", "error", "text")),
    ):
        if table.num_rows:
            output.line()
            output.line(f"{title}: {count(table.num_rows)}", "bold")
            _show_rows(output, table, columns)
    output.line()
    output.line("a preview publishes nothing; run it without --preview to do so")
    rows = {"kept": seen.kept, "rejects": seen.rejects, "quarantine": seen.quarantine}
    listed: dict[str, Any] = {name: table.to_pylist() for name, table in rows.items()}
    output.result({"lake": lake.uri, "preview": True, "steps": steps, **listed})


def _show_rows(output: Output, table: pa.Table, wanted: tuple[str, ...]) -> None:
    """Columns that say something; numbers short, texts cut."""
    names = [name for name in wanted if name in table.column_names and table[name].null_count < table.num_rows]
    rows = []
    for row in table.select(names).to_pylist():
        rows.append([f"{value:g}" if isinstance(value, float) else shorten(value, 60) for value in row.values()])
    output.table(names, rows, [name for name in names if name in ("value", "threshold")])
