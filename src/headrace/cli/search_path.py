"""Make users' own operators importable: from the working directory, then from the pipeline file's folder."""

from __future__ import annotations

import os
import sys


def extend_search_path(pipeline_file: str | None = None) -> None:
    """Working directory first, as `python -m` has it; the file's folder last, so that it hides nothing."""
    try:
        here = os.getcwd()
    except FileNotFoundError:  # somebody removed it under us
        here = None
    if here is not None and here not in sys.path:
        sys.path.insert(0, here)
    if pipeline_file is not None:
        folder = os.path.dirname(os.path.abspath(pipeline_file)) if here or os.path.isabs(pipeline_file) else None
        if folder is not None and folder not in sys.path:
            sys.path.append(folder)
