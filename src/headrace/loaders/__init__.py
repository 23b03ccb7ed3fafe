"""Streaming training loader.  See README.md in this folder."""

from headrace.loaders.streaming import StreamingLoader

__all__ = ["StreamingLoader"]
