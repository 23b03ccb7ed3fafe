"""`headrace runs`: what was run in this lake, and whether it is right."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headrace.cli.funnel import gates_line, show_funnel
from headrace.cli.options import JsonOption, LakeOption, call_of, open_lake
from headrace.cli.output import Output, count, duration, shorten, size
from headrace.cli.search_path import extend_search_path
from headrace.errors import DataError

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Runs of this lake: list, show, verify.")

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Run id, as `headrace runs ls` lists it.")]


@app.command("ls")
def ls(context: typer.Context, lake: LakeOption = None, is_json: JsonOption = False) -> None:
    """List all runs, oldest first."""
    output = Output(is_json)
    place = open_lake(context, lake, output)
    from headrace.pipelines.runs import list_runs

    found = list_runs(place)
    if found:
        rows = [
            [
                info.run,
                info.status,
                info.pipeline,
                info.output if info.version is None else f"{info.output}@{info.version}",
                f"{count(info.finished)}/{count(info.units)}",
                info.created_at,
            ]
            for info in found
        ]
        output.table(("run", "status", "pipeline", "output", "units", "planned"), rows, ("units",))
    else:
        output.note("no runs yet" if place.exists() else "there is no lake here yet; a run makes it")
    output.result({"lake": place.uri, "runs": [vars(info) for info in found]})


@app.command("show")
def show(context: typer.Context, run: RunArgument, lake: LakeOption = None, is_json: JsonOption = False) -> None:
    """Show plan, progress and report of a run."""
    output = Output(is_json)
    place = open_lake(context, lake, output)
    from headrace.pipelines.runs import failed_gates, show_run

    facts = show_run(place, run)
    at = "" if facts["version"] is None else f"@{facts['version']}"
    output.line(f"run {facts['run']}: {facts['status']}", "bold")
    output.line(f"pipeline {facts['pipeline']} -> {facts['output']}{at}, planned {facts['created_at']}")
    if facts.get("fresh"):
        output.line(f"fresh: {facts['fresh']}")
    for segment in facts["segments"]:
        done = f"{count(segment['finished'])} of {count(segment['units'])} units finished"
        output.line(f"segment {segment['segment'] + 1} of {len(facts['segments'])}: {done}")
    report = facts["report"]
    if report is None:
        output.line("steps: " + ", ".join(step["op"] for step in facts["spec"]["steps"]))
    else:
        _show_report(output, report)
    if facts["status"] == "refused":
        told = ", ".join(
            f"{gate['gate']}: measured {gate['value']:g}, limit {gate['limit']:g}" for gate in failed_gates(report)
        )
        output.line(f"refused by {told}; nothing was published", "bold red")
        output.line("change the gate or the pipeline, and run the file again; a resume would measure the same")
    elif facts["status"] == "unfinished":
        output.line(f"continue with: headrace resume {facts['run']}{call_of(context).lake_option}")
    output.result({"lake": place.uri, **facts})


@app.command("verify")
def verify(context: typer.Context, run: RunArgument, lake: LakeOption = None, is_json: JsonOption = False) -> None:
    """Count a published run again from the bytes: input, kept rows, rejects, quarantine."""
    output = Output(is_json)
    extend_search_path()
    place = open_lake(context, lake, output)
    from headrace.pipelines.verify import verify_run

    verification = verify_run(place, run)
    words = {True: "ok", False: "DIFFERS", None: "skipped"}
    rows = [
        [words[check.passed], check.check, shorten(check.counted), shorten(check.expected), check.note]
        for check in verification.checks
    ]
    output.table(("", "check", "counted", "expected", "note"), rows)
    output.result({"lake": place.uri, **verification.to_dict()})
    if not verification.ok:
        failed = sum(check.passed is False for check in verification.checks)
        output.note(f"run {run}: {failed} checks differ", "bold red")
        raise typer.Exit(DataError.exit_code)
    output.line(f"run {run}: verified", "bold green")


def _show_report(output: Output, report: dict[str, Any]) -> None:
    given = report["input"]
    output.line(f"input: {count(given['files'])} files, {size(given['size_bytes'])}")
    show_funnel(output, report["steps"])
    output.line(gates_line(report["gates"]))
    for change in report.get("accepted", []):
        output.line(f"accepted code change: steps[{change['step']}] {change['op']}")
    output.line(f"{report['engine']}, {report['cpus']} cpus, {duration(report['seconds'])}")
