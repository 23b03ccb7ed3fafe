"""The command `headrace`: arguments in, exit code out.  Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from headrace.cli import dataset, operators, run, runs
from headrace.cli.errors import report
from headrace.cli.invocation import Invocation
from headrace.cli.output import write
from headrace.cli.stop import finish, stoppable

app = typer.Typer(
    name="headrace",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # boxes around the help double its time
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 2 wrong input, 3 wrong rows, 4 not found, 5 gate, 6 try again, 70 bug, 130 stopped.",
)
app.command("run")(run.run)
app.command("resume")(run.resume)
app.command("operators")(operators.operators)
app.add_typer(runs.app, name="runs")
app.add_typer(dataset.app, name="dataset")

_SIGTERM = 15


def _version(is_wanted: bool) -> None:
    if is_wanted:
        import headrace

        write(sys.stdout, f"headrace {headrace.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    is_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    is_debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; may stand after the command too.")
    ] = False,
) -> None:
    """Training-data pipelines over versioned Lance datasets."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    call, rest = Invocation.of(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a narrow terminal encoding costs a letter, not the command
    with stoppable(call):
        code = _run(call, rest)
        if call.signum:
            return finish(call)
    return _flushed(code)


def _run(call: Invocation, arguments: list[str]) -> int:
    try:
        # Not standalone: errors and exit codes are ours.  None where the command just returned.
        command = typer.main.get_command(app)
        return int(command.main(arguments, "headrace", standalone_mode=False, obj=call) or 0)
    except KeyboardInterrupt:
        call.signum = call.signum or 2
        return 130
    except SystemExit as end:
        # Ray, once started, answers SIGTERM itself, by exiting with the signal's number.
        if end.code == _SIGTERM:
            call.signum = _SIGTERM
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:  # noqa: BLE001  (the last frame: whatever arrives here is told and becomes an exit code)
        return call.signum or report(error, call)


def _flushed(code: int) -> int:
    """Flush now: at the interpreter's own end, a reader who left early would be an error message."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return code or 1
    return code


if __name__ == "__main__":
    sys.exit(main())
