"""Ctrl-C and SIGTERM: stop within seconds, and say how to go on.

1. The first signal raises KeyboardInterrupt in the main thread.  Once that is unwound (leases given back, engines
   stopped), the process leaves without waiting for threads with units in flight.
2. Where unwinding takes more than GRACE_SECONDS, or at a second signal, the process leaves at once.
3. A run that is killed anywhere is right anyway, so nothing is lost but the units in flight.
4. The exit code is 128 + the signal: 130 for Ctrl-C, 143 for SIGTERM.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from headrace.cli.invocation import Invocation
from headrace.cli.output import Output, write

GRACE_SECONDS = 5.0

_SHOW_CURSOR = b"\x1b[?25h"


@contextmanager
def stoppable(call: Invocation) -> Iterator[None]:
    """Own both signals for the length of the block; in another thread than the main one, leave them alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(signum: int, frame: FrameType | None) -> None:
        if call.signum:
            _leave(call)
        call.signum = signum
        threading.Thread(target=_leave_later, args=(call,), daemon=True, name="headrace-stop").start()
        raise KeyboardInterrupt

    before = {signum: signal.signal(signum, on_signal) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def finish(call: Invocation) -> int:
    """Say that the call was stopped, after it is unwound; returns the exit code, or ends the process here."""
    call.is_told = True
    write(sys.stderr, _told(call))
    Output(call.is_json).result(_facts(call))
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        os._exit(_exit_code(call))  # the interpreter would wait for the units in flight
    return _exit_code(call)


def _exit_code(call: Invocation) -> int:
    """By convention of shells."""
    return 128 + call.signum


def _told(call: Invocation) -> str:
    """What a person reads at the end."""
    return f"stopped; continue with: {call.resume_command}" if call.run else "stopped; nothing was published"


def _facts(call: Invocation) -> dict[str, Any]:
    """What a program reads at the end."""
    facts = {"kind": "Stopped", "signal": signal.Signals(call.signum).name, "exit_code": _exit_code(call)}
    return {"error": {**facts, "run": call.run or None, "resume": call.resume_command or None}}


def _leave_later(call: Invocation) -> None:
    time.sleep(GRACE_SECONDS)
    _leave(call)


def _leave(call: Invocation) -> None:
    """End the process without waiting for anyone; only plain system calls, since anything may be half done."""
    if not call.is_told:
        if os.isatty(2):
            os.write(2, _SHOW_CURSOR)  # a progress bar may have hidden it
        os.write(2, f"\n{_told(call)}\n".encode())
        if call.is_json:
            os.write(1, json.dumps(_facts(call)).encode() + b"\n")
    os._exit(_exit_code(call))
