"""What a process is told that shall be a scheduler or a worker: plain values, ready for JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dask.config

from shoal.config import Nanny, read
from shoal.errors import UnsupportedOption
from shoal.nanny.errors import NotPlain
from shoal.observe.asked import class_named
from shoal.protocol.payload import dump_function, load

_HASH_SEED = "6640"
"""Workers must agree on the hash of a text: tasks group by it.  Dask's own pools have this one."""


def document_of(
    role: str,
    token: bytes,
    options: Mapping[str, Any],
    *,
    log_level: int,
    config: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a process of `role` needs to become that.

    Args:
        role: "scheduler" or "worker".
        token: the cluster's; a worker needs it as well, since its tasks may have a client.
        options: keyword arguments of the service.
        log_level: from which on its log is heard.
        config: what is to be other than in our configuration as it is now, by dotted names or
            nested.
    """
    whole = plain_part_of(dask.config.config)  # a copy, as deep as it goes
    if config is not None:
        nested: dict[str, Any] = {}
        dask.config.set(plain_part_of(config), config=nested)
        dask.config.update(whole, nested)
    return {
        "role": role,
        "path": [str(entry) for entry in sys.path],
        "config": whole,
        "log_level": log_level,
        "secret": token.hex(),
        "options": options,
    }


def nthreads_of(document: Mapping[str, Any], most: int) -> int:
    """How many threads a process and all that it starts may have; 0: any number.

    Args:
        document: what it shall be; only workers execute what might start them without end.
        most: beside those in which its tasks are executed; 0: any number.
    """
    if document.get("role") != "worker" or not most:
        return 0
    return most + int(document["options"].get("nthreads") or 0)


def worker_environ(added: Mapping[str, Any] | None = None) -> dict[str, str]:
    """What a worker's environment shall be: ours, and what the settings and `added` say.

    A variable that the user has set wins over the settings, and `added` over both; what is None
    there is said to be no variable.
    """
    settings = read(Nanny)
    said = {**settings.pre_spawn_environ, **settings.environ, **os.environ, **(added or {})}
    environ = {"PYTHONHASHSEED": _HASH_SEED, **said}
    return {name: str(value) for name, value in environ.items() if value is not None}


def limit_native_threads() -> None:
    """This process is about to be a worker that nobody has started for that: set for it what
    libraries read as they load, unless the user has."""
    for name, value in read(Nanny).pre_spawn_environ.items():
        if value is not None:
            os.environ.setdefault(name, str(value))


def plain_part_of(value: Any) -> Any:
    """What of a configuration can be written as JSON: the rest belongs to this process alone."""
    if isinstance(value, Mapping):
        return {str(key): plain_part_of(item) for key, item in value.items() if _is_plain(item)}
    if isinstance(value, list | tuple):
        return [plain_part_of(item) for item in value if _is_plain(item)]
    return value


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool | list | tuple | Mapping)


def listed(preload: str | Sequence[Any] | None) -> list[Any] | None:
    """Preloads of a worker, or their arguments, as they travel; None: nobody has said any."""
    if preload is None:
        return None
    return [preload] if isinstance(preload, str) else list(preload)


def pickled_plugins(plugins: Iterable[Any]) -> list[str]:
    """Plugins of a worker, as they travel; `load_plugins` reads them."""
    return [dump_function(plugin).hex() for plugin in plugins]


def load_plugins(pickled: Iterable[str]) -> list[Any]:
    """Plugins that have travelled."""
    return [load(bytes.fromhex(text)) for text in pickled]


def pickled_class(kind: type[Any] | str | None) -> str | None:
    """A class of workers, or the name under which it can be imported, as it travels; None: ours.

    Raises:
        UnknownClass: there is none of that name (an ImportError).
    """
    if kind is None:
        return None
    if isinstance(kind, str):
        kind = class_named(kind)
    return dump_function(kind).hex()


def pickled_data(data: Any) -> str | None:
    """What a worker is to keep its results in, as it travels; `load_class` reads it; None: ours."""
    return None if data is None else dump_function(data).hex()


def load_class(pickled: str) -> Any:
    """A class that has travelled."""
    return load(bytes.fromhex(pickled))


def refuse_absent(options: Mapping[str, Any], remedies: Mapping[str, str]) -> None:
    """Raise UnsupportedOption for an option of `options` that asks for what is not there.

    Args:
        remedies: what to do instead, by the option's name.
    """
    for name, value in options.items():
        if value and name in remedies:
            raise UnsupportedOption(f"{name}=", remedies[name])


def require_plain(what: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """`options` as they are.

    Raises:
        NotPlain: one of them can't be sent to another process.
    """
    for name, value in options.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            option = f"{what}[{name!r}]" if what else name
            raise NotPlain(option, type(value).__name__) from error
    return dict(options)
