"""Dumps of a whole cluster's state: written as one file, and read again.

Msgpack, compressed, for programs (`.msgpack.gz`), or YAML for people (`.yaml`).  A file may be
anywhere that `fsspec` knows.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from shoal.observe.errors import UnknownDumpFormat

SUFFIXES: Final = {"msgpack": ".msgpack.gz", "yaml": ".yaml"}
"""Format → how its files end."""


_DEPTH: Final = 4
"""Down to one task of one worker, of a state, and less than a ms of work."""

_PART_BYTES: Final = 1 << 16


def file_of(name: str, format: str) -> str:
    """`name`, with the ending of its format.

    Raises:
        UnknownDumpFormat: it is none of ours.
    """
    if format not in SUFFIXES:
        raise UnknownDumpFormat(format, list(SUFFIXES))
    suffix = SUFFIXES[format]
    return name if name.endswith(suffix) else name + suffix


def is_url(name: str) -> bool:
    """Whether a file's name says by which protocol it is reached."""
    return "://" in name


def plain(value: Any, depth_max: int = 20) -> Any:
    """A value as a dump can have it: what is of no plain type, or lies deeper, is its text."""
    if isinstance(value, Mapping) and depth_max:
        return {str(key): plain(item, depth_max - 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset) and depth_max:
        return [plain(item, depth_max - 1) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def packed(state: Mapping[str, Any], format: str) -> bytes:
    """A state as the content of a file.  Cost: about a second for 10 MB of YAML, far less else.

    Parts that are encoded already (`msgspec.Raw`) are taken as they are.  Made a piece at a time:
    what encodes one piece lets no other thread of the process run.

    Raises:
        UnknownDumpFormat: the format is none of ours.
    """
    file_of("", format)
    if format == "msgpack":
        return _compressed(_pieces(state, _DEPTH))
    yaml: Any = import_module("yaml")  # what few need, and is not annotated

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(in_plain_types(state), Dumper=dumper, sort_keys=False)
    return text.encode()


def in_plain_types(value: Any, depth: int = _DEPTH) -> Any:
    """A state, or a part, with what is encoded in it decoded, and in types that YAML has."""
    if isinstance(value, msgspec.Raw):
        return msgspec.msgpack.decode(value, strict=False)
    if depth and isinstance(value, Mapping):
        return {key: in_plain_types(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, list | tuple):
        return [in_plain_types(item, depth - 1) for item in value]
    return msgspec.to_builtins(value)


def write(state: Mapping[str, Any], url: str, format: str, options: Mapping[str, Any]) -> None:
    """Write a state to `url`; see `write_content`."""
    write_content(packed(state, format), url, options)


async def write_state(
    get_state: Callable[[], Awaitable[Mapping[str, Any]]],
    url: str,
    format: str,
    **storage_options: Any,
) -> None:
    """Write what `get_state` gives to `url`, which gets the ending of its format; see `write`."""
    file = file_of(url, format)
    state = await get_state()
    await asyncio.to_thread(write, state, file, format, storage_options)


def write_content(content: bytes, url: str, options: Mapping[str, Any]) -> None:
    """Put a file where `url` says.

    Args:
        options: for `fsspec`, which opens what is no plain path.

    Raises:
        OSError: it can't be written there.
    """
    if not options and not is_url(url):
        Path(url).write_bytes(content)
        return
    with _fsspec().open(url, mode="wb", compression=None, **options) as opened:
        opened.write(content)


def read(url: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The state in a file that one of these wrote.

    Raises:
        UnknownDumpFormat: it ends like none of them.
        OSError: it can't be read.
    """
    if not url.endswith(tuple(SUFFIXES.values())):
        raise UnknownDumpFormat(url, list(SUFFIXES.values()))
    if options or is_url(url):
        with _fsspec().open(url, mode="rb", compression=None, **options) as opened:
            content = opened.read()
    else:
        content = Path(url).read_bytes()
    if url.endswith(SUFFIXES["msgpack"]):
        import gzip  # late: few programs read a dump

        unpacked = gzip.decompress(content)
        state: dict[str, Any] = msgspec.msgpack.decode(unpacked, strict=False)
        return state
    yaml: Any = import_module("yaml")  # what few need, and is not annotated

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: dict[str, Any] = yaml.load(content, Loader=loader)
    return loaded


def load_dump(url: str, **storage_options: Any) -> dict[str, Any]:
    """As `read`, with the options for `fsspec` by name."""
    return read(str(url), storage_options)


class DumpArtefact(Mapping[str, Any]):
    """The state of a cluster as `Client.dump_cluster_state` wrote it.

    `["scheduler"]`, `["workers"][address]` and `["versions"]` are what was known then.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self.dump = state

    @classmethod
    def from_url(cls, url: str, **kwargs: Any) -> Self:
        """Read a dump.

        Args:
            kwargs: for `fsspec`, as it was written with.

        Raises:
            UnknownDumpFormat: the name ends as no dump does.
            OSError: it can't be read.
        """
        return cls(read(url, kwargs))

    def __getitem__(self, key: str) -> Any:
        return self.dump[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.dump)

    def __len__(self) -> int:
        return len(self.dump)

    def scheduler_tasks_in_state(self, state: str | None = None) -> list[dict[str, Any]]:
        """Tasks that the scheduler had in a state; all, if none is named."""
        return _in_state(self.dump["scheduler"]["tasks"], state)

    def worker_tasks_in_state(self, state: str | None = None) -> list[dict[str, Any]]:
        """Tasks that workers had in a state; all, if none is named."""
        return [task for told in self._told() for task in _in_state(told["tasks"], state)]

    def scheduler_story(self, *key_or_stimulus_id: object) -> dict[str, list[tuple[Any, ...]]]:
        """Key or stimulus → what the scheduler had recorded of it, oldest first."""
        log = self.dump["scheduler"]["transition_log"]
        return {str(word): _about(log, str(word)) for word in key_or_stimulus_id}

    def worker_story(self, *key_or_stimulus_id: object) -> dict[str, list[tuple[Any, ...]]]:
        """Key or stimulus → what workers had recorded of it, one worker after the other."""
        return {
            str(word): [entry for told in self._told() for entry in _about(told["log"], str(word))]
            for word in key_or_stimulus_id
        }

    def missing_workers(self) -> list[str]:
        """Addresses of workers that the scheduler knew, and that did not tell their state."""
        return [
            address
            for address in self.dump["scheduler"]["workers"]
            if not isinstance(self.dump["workers"].get(address), dict)
        ]

    def to_yamls(
        self,
        root_dir: str | Path | None = None,
        worker_expand_keys: Collection[str] = ("config", "log", "logs", "tasks"),
        scheduler_expand_keys: Collection[str] = (
            "events",
            "extensions",
            "log",
            "task_groups",
            "tasks",
            "transition_log",
            "workers",
        ),
    ) -> None:
        """Write a folder for the scheduler and one for each worker, with several small files each.

        Args:
            root_dir: where to make the folders; None: here.
            worker_expand_keys: what gets a file of its own; the rest is in `general.yaml`.
            scheduler_expand_keys: likewise.
        """
        root = Path(root_dir) if root_dir is not None else Path.cwd()
        parts = [("scheduler", self.dump["scheduler"], scheduler_expand_keys)]
        for told in self._told():
            parts.append((str(told["id"]).replace("/", "-"), told, worker_expand_keys))
        for name, told, expanded in parts:
            folder = root / name
            folder.mkdir(parents=True, exist_ok=True)
            general = {key: value for key, value in told.items() if key not in expanded}
            files = {key: told[key] for key in expanded if key in told} | {"general": general}
            for file, content in files.items():
                (folder / f"{file}.yaml").write_bytes(packed({file: content}, "yaml"))

    def _told(self) -> list[dict[str, Any]]:
        return [told for told in self.dump["workers"].values() if isinstance(told, dict)]


def _fsspec() -> Any:
    return import_module("fsspec")  # dask has it; it is not annotated


def _compressed(pieces: Iterator[bytes]) -> bytes:
    """What they are together, compressed."""
    import gzip  # late: few programs write a dump

    content, part = io.BytesIO(), bytearray()
    with gzip.GzipFile(fileobj=content, mode="wb", compresslevel=6) as opened:
        for piece in pieces:
            part += piece
            if len(part) >= _PART_BYTES:
                opened.write(part)
                part.clear()
        opened.write(part)
    return content.getvalue()


def _pieces(value: Any, depth: int) -> Iterator[bytes]:
    """The msgpack of a value, the items of collections down to `depth` one by one."""
    if depth and isinstance(value, Mapping):
        yield b"\xdf" + len(value).to_bytes(4)  # a map of so many
        for key, item in value.items():
            yield msgspec.msgpack.encode(key)
            yield from _pieces(item, depth - 1)
    elif depth and isinstance(value, list | tuple):
        yield b"\xdd" + len(value).to_bytes(4)  # an array of so many
        for item in value:
            yield from _pieces(item, depth - 1)
    else:
        yield msgspec.msgpack.encode(value)


def _in_state(tasks: Mapping[str, dict[str, Any]], state: str | None) -> list[dict[str, Any]]:
    return [task for task in tasks.values() if state is None or task["state"] == state]


def _about(log: Collection[Any], word: str) -> list[tuple[Any, ...]]:
    """Entries of a key, or with that stimulus, which stands before the instant."""
    return [tuple(entry) for entry in log if word in (entry[0], entry[-2])]
