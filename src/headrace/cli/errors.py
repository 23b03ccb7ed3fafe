"""How a command that failed ends: one message on stderr, the exit code of its class, in JSON mode one object too."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from headrace.cli.invocation import Invocation
from headrace.cli.output import Output, write
from headrace.errors import HeadraceError, InternalError, SpecError

USAGE = SpecError.exit_code
INTERNAL = InternalError.exit_code


def report(error: BaseException, call: Invocation) -> int:
    """Tell the error; returns the exit code."""
    if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command; the message is its help
        write(sys.stderr, str(getattr(error, "message", "")))
        return USAGE
    message, code = _message(error), _exit_code(error)
    write(sys.stderr, f"error: {message}", "bold red")
    retryable = isinstance(error, HeadraceError) and error.retryable
    if retryable and call.run:
        write(sys.stderr, f"try again with: {call.resume_command}")
    if call.is_debug:
        write(sys.stderr, "".join(traceback.format_exception(error)))
    elif code == INTERNAL:
        write(sys.stderr, "this should not happen; please report it, with what --debug shows")
    Output(call.is_json).result({"error": {**_facts(error), "message": message, "exit_code": code}})
    return code


def _facts(error: BaseException) -> dict[str, Any]:
    if isinstance(error, HeadraceError):
        parts = {"place": error.place, "got": error.got, "rule": error.rule, "fix": error.fix}
        facts = {"kind": type(error).__name__, **parts, "retryable": error.retryable}
        return {**facts, "problems": list(error.problems or [str(error)])} if isinstance(error, SpecError) else facts
    kind = "UsageError" if _is_usage(error) else type(error).__name__
    return {"kind": kind, "retryable": False}


def _is_usage(error: BaseException) -> bool:
    """True for what the command line's own parser raises; typer has its classes in different places by version."""
    return not isinstance(error, HeadraceError) and hasattr(error, "format_message") and hasattr(error, "exit_code")


def _exit_code(error: BaseException) -> int:
    if isinstance(error, HeadraceError):
        return error.exit_code
    return USAGE if _is_usage(error) else INTERNAL


def _message(error: BaseException) -> str:
    if isinstance(error, HeadraceError):
        return str(error)
    if _is_usage(error):
        context = getattr(error, "ctx", None)
        path = getattr(context, "command_path", "headrace")
        told: str = getattr(error, "format_message")()  # noqa: B009  (not in the type that is known here)
        return f"{told.rstrip('.')}; see: {path} --help"
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
