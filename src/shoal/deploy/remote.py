"""What runs on another host that a cluster reaches by SSH: a scheduler, or the workers of a host.

Standard input brings one document that says what to run, with the cluster's token, so that no
secret stands in a command line or an environment.  Nothing follows it: its end is the end of the
cluster, of the program that has it, or of the connection.  Either way we close, and if that takes
too long we just end.  Standard output has one line of JSON, of what has started or why it has not.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

import dask.config

from shoal import config
from shoal.client.dask_settings import settings_with_client
from shoal.deploy.child import SWITCH_INTERVAL_SECONDS, configure_log, loop_factory
from shoal.deploy.lifeline import CLOSE_SECONDS_MAX, TEARDOWN_SECONDS_MAX, exit_within
from shoal.deploy.spec import class_of, made, parameters_of
from shoal.errors import ShoalError
from shoal.nanny.bootstrap import read_document
from shoal.nanny.document import limit_native_threads
from shoal.observe.limits import cpu_count

FAILED: Final = "failed"
SERVICES: Final = "services"
"""First words of the line on standard output."""

_ENDINGS: Final = (signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    """Run what the document on standard input describes, until that input ends."""
    document = read_document(0)
    if document is None:
        return  # whoever has started us has gone
    orders, words = _take_streams()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    dask.config.update(dask.config.config, document["config"])
    if dask.config.config.get("scheduler") == "dask.distributed":
        del dask.config.config["scheduler"]  # that was the client of whoever has started us
    dask.config.set(settings_with_client())  # tasks have one
    configure_log(document["log_level"])
    with words, asyncio.Runner(loop_factory=loop_factory()) as runner:
        is_well = runner.run(_until_end(document, orders, words))
    exit_within(CLOSE_SECONDS_MAX, 0)  # Python would wait for threads of tasks
    if not is_well:
        raise SystemExit(1)


def _take_streams() -> tuple[int, Any]:
    """Where the end is to be seen, and where to say that we are there.

    What tasks print goes where errors go, and what they read is nothing.
    """
    orders, words = os.dup(0), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return orders, words


async def _until_end(document: Mapping[str, Any], orders: int, words: Any) -> bool:
    """Serve until standard input ends, or a signal comes; whether nothing went wrong."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(_serve(document, words))
    for number in _ENDINGS:
        loop.add_signal_handler(number, task.cancel)
    # A thread, since a worker's task may hold up the loop.
    watching = threading.Thread(
        target=_watch, args=(orders, loop, task), name="shoal-lifeline", daemon=True
    )
    watching.start()
    try:
        return await task
    except asyncio.CancelledError:
        return True


def _watch(orders: int, loop: asyncio.AbstractEventLoop, task: asyncio.Task[bool]) -> None:
    """Wait for the end of standard input, and have everything close then."""
    with contextlib.suppress(OSError):  # the same as its end
        while os.read(orders, 1 << 12):
            pass
    with contextlib.suppress(RuntimeError):  # the loop has closed, and the process is about to end
        loop.call_soon_threadsafe(task.cancel)
    exit_within(CLOSE_SECONDS_MAX, 1)


async def _serve(document: Mapping[str, Any], words: Any) -> bool:
    """Start the services, say where they are, and stay; they are closed in the end.

    Returns:
        Whether nothing went wrong.
    """
    services: list[Any] = []
    try:
        with _told(words):
            services += _services(document)
            outcomes = await asyncio.gather(*map(_started, services), return_exceptions=True)
            for outcome in outcomes:
                if outcome is not None:
                    raise outcome
        _say(words, {SERVICES: [_facts(service) for service in services]})
        await asyncio.gather(*(service.finished() for service in services))
        return not any(getattr(service, "failure", None) for service in services)
    except _Told:
        return False
    finally:
        closing = (_closed(service) for service in services)
        await asyncio.gather(*closing, return_exceptions=True)


class _Told(Exception):
    """What has started us knows what is wrong."""


@contextlib.contextmanager
def _told(words: Any) -> Iterator[None]:
    """What a user can mend is said in a line, without a traceback."""
    try:
        yield
    except (ShoalError, OSError, ImportError, TypeError, ValueError) as error:
        _say(words, {FAILED: f"{type(error).__name__}: {error}"})
        raise _Told from error


def _services(document: Mapping[str, Any]) -> list[Any]:
    """What the document describes, not started.  Raises what keeps them from being made."""
    from shoal.scheduler.shell import collecting

    token, arguments = bytes.fromhex(document["secret"]), document["arguments"]
    if arguments:
        limit_native_threads()  # before anything of the user's is imported
        sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    else:
        collecting.take_over()
    services = []
    for options in document["each"]:
        kind = class_of(document["class"])
        if "nthreads" in parameters_of(kind) and not options.get("nthreads"):
            options["nthreads"] = max(1, cpu_count() // len(document["each"]))
        service = made({"cls": kind, "options": options}, *arguments, token=token)
        _have_it_reconnect(service)
        services.append(service)
    return services


def _have_it_reconnect(service: Any) -> None:
    """There is a network between it and the scheduler, which may fail for a moment."""
    seconds = config.read(config.Worker).reconnect_seconds
    if hasattr(service, "have_it_reconnect"):
        service.have_it_reconnect(seconds)
    elif hasattr(service, "reconnect_seconds"):
        service.reconnect_seconds = seconds


async def _started(service: Any) -> None:
    await service


async def _closed(service: Any) -> None:
    if hasattr(service, "teardown_seconds_max"):
        service.teardown_seconds_max = TEARDOWN_SECONDS_MAX
    await service.close()


def _facts(service: Any) -> dict[str, Any]:
    """What a cluster wants to know of a service."""
    address = getattr(service, "worker_address", None) or service.address
    return {
        "address": address,
        "memory_limit": int(getattr(service, "memory_limit", None) or 0),
        "nthreads": int(getattr(service, "nthreads", None) or 0),
        "services": dict(getattr(service, "services", None) or {}),
    }


def _say(words: Any, what: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):  # nobody is there any more, as the end of our input tells
        words.write(json.dumps(what) + "\n")
        words.flush()


if __name__ == "__main__":
    main()
