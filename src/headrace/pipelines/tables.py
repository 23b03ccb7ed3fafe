"""Arrow tables as bytes, for scratch objects and for what travels between stages."""

from __future__ import annotations

import pyarrow as pa


def table_to_bytes(table: pa.Table) -> bytes:
    """An IPC stream, lightly compressed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_from_bytes(body: bytes | pa.Buffer) -> pa.Table:
    """The inverse of `table_to_bytes`; zero copy from a buffer where nothing was compressed."""
    with pa.ipc.open_stream(pa.py_buffer(body) if isinstance(body, bytes) else body) as reader:
        return reader.read_all()
