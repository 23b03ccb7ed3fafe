"""Named points where a test can stop, kill or break this process, to prove what survives.

`HEADRACE_FAULT=point[:nth][=kill | =pause SECONDS | =raise]`; without an action the process kills itself (SIGKILL),
without `nth` every pass through the point counts.  Unset, a point costs one look-up.

>>> os.environ["HEADRACE_FAULT"] = "commit.before:2=raise"
>>> fault("commit.before")
>>> fault("commit.before")
Traceback (most recent call last):
headrace.storage.faults.InjectedFault: commit.before
>>> del os.environ["HEADRACE_FAULT"]
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections import Counter

from headrace.errors import SpecError

VARIABLE = "HEADRACE_FAULT"
_GRAMMAR = re.compile(
    r"(?P<point>[a-z0-9_.]+)(:(?P<nth>[1-9][0-9]*))?(=(?P<action>kill|raise|pause (?P<seconds>[0-9]*\.?[0-9]+)))?"
)

_lock = threading.Lock()
_passes: Counter[str] = Counter()


class InjectedFault(RuntimeError):
    """What the action `raise` raises; no code of ours catches it."""


def fault(point: str) -> None:
    """Do what the environment asks at this point, normally nothing."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return
    asked = _GRAMMAR.fullmatch(text)
    if asked is None:
        raise SpecError(VARIABLE, repr(text), "must be point[:nth][=kill|pause SECONDS|raise]", "unset it")
    if asked["point"] != point:
        return
    with _lock:
        _passes[point] += 1
        passes = _passes[point]
    if asked["nth"] and int(asked["nth"]) != passes:
        return
    if asked["seconds"]:
        time.sleep(float(asked["seconds"]))
    elif asked["action"] == "raise":
        raise InjectedFault(point)
    else:
        os.kill(os.getpid(), signal.SIGKILL)
