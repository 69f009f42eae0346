"""Arrow's tables: parts of tables travel as those parts.

Pickle sends the whole memory that a part lies in; a table that fills its memory it sends as it is,
so this is only asked about parts.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from shoal.protocol.families.registry import always, learn

_SLACK_NBYTES = 4096
"""So much more memory than values there may be before it is worth a copy."""


def from_batch(value: Any) -> tuple[dict[str, Any], list[Any]]:
    """A stream of Arrow's own format with one batch.  Cost: one copy."""
    return {}, [_written(value.schema, [value])]


def to_batch(header: dict[str, Any], frames: list[Any]) -> Any:
    """The batch, in the memory of its frame."""
    return pa.ipc.open_stream(pa.py_buffer(_joined(frames))).read_next_batch()


def from_table(value: Any) -> tuple[dict[str, Any], list[Any]]:
    """A stream of Arrow's own format.  Cost: one copy."""
    return {}, [_written(value.schema, value.to_batches())]


def to_table(header: dict[str, Any], frames: list[Any]) -> Any:
    """The table, in the memory of its frame."""
    return pa.ipc.open_stream(pa.py_buffer(_joined(frames))).read_all()


def is_part(value: Any) -> bool:
    """Whether there is much more memory behind it than it has values."""
    return bool(value.get_total_buffer_size() > value.nbytes + _SLACK_NBYTES)


def from_description(value: Any) -> tuple[dict[str, Any], list[Any]]:
    """What is known of a file, which Arrow does not pickle."""
    kind = int(value.type)
    return {"path": value.path, "type": kind, "size": value.size, "mtime_ns": value.mtime_ns}, []


def to_description(header: dict[str, Any], frames: list[Any]) -> Any:
    """The same of the same file."""
    from pyarrow.fs import FileInfo, FileType

    kind = FileType(header["type"])
    return FileInfo(header["path"], kind, size=header["size"], mtime_ns=header["mtime_ns"])


def _written(schema: Any, batches: list[Any]) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return memoryview(sink.getvalue())


def _joined(frames: list[Any]) -> Any:
    return frames[0] if len(frames) == 1 else b"".join(frames)


def teach() -> None:
    """For the registry."""
    from pyarrow.fs import FileInfo

    learn(pa.RecordBatch, from_batch, to_batch, when=is_part)
    learn(pa.Table, from_table, to_table, when=is_part)
    learn(FileInfo, from_description, to_description, when=always)
