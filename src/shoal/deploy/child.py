"""What runs in a process that a cluster has started: one scheduler or one worker.

The parent holds the other end of our standard input, a socket.  On it come the document that says
what to run, then the word to go; on it goes what became of us.  When it ends, the parent has closed
the cluster or has died: either way we close, and if that takes too long we just end.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from types import FrameType
from typing import Any, Final

import dask.config
import msgspec

from shoal import config
from shoal.client.dask_settings import settings_with_client
from shoal.deploy.daemonic import appear_daemonic
from shoal.deploy.lifeline import (
    CLOSE_SECONDS_MAX,
    TEARDOWN_SECONDS_MAX,
    Lifeline,
    exit_within,
)
from shoal.errors import ShoalError
from shoal.nanny.descriptors import take_standard_input
from shoal.nanny.document import load_class, load_plugins
from shoal.protocol.exceptions import from_failure

LOG_SETTINGS: Final = (
    "logging",
    "logging-file-config",
    "distributed.logging",
    "distributed.logging-file-config",
)
"""Where users of `distributed` say what is logged, and how.  What reads that is found by its name,
as old names stand on us."""

SWITCH_INTERVAL_SECONDS: Final = 0.001
"""Of a worker: how long its loop waits for a task that computes in pure Python."""

KILLED_SECONDS: Final = 0.5
"""How long a child that was killed may take to be gone."""


def main(document: dict[str, Any]) -> None:
    """Run what `document` describes, until the parent lets go of us."""
    channel = take_standard_input()
    signal.signal(signal.SIGINT, _do_nothing)  # not SIG_IGN, which programs of tasks would inherit
    faulthandler.enable(all_threads=False)  # the others are mostly ours, and tell nothing
    dask.config.config.clear()  # it is that of our own environment; the parent's is whole
    dask.config.update(dask.config.config, document["config"])
    if dask.config.config.get("scheduler") == "dask.distributed":
        del dask.config.config["scheduler"]  # that was the parent's client
    dask.config.set(settings_with_client())  # tasks have one
    configure_log(document["log_level"])
    serve = serve_worker if document["role"] == "worker" else serve_scheduler
    with channel, asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(document, Lifeline(channel)))
    _end_children()
    exit_within(CLOSE_SECONDS_MAX, 0)  # Python would wait for threads of pools, as for processes


def _end_children() -> None:
    """What tasks have begun by `multiprocessing`, pools of a worker included, ends with us.

    Python would wait for it, for as long as it likes, and leave it behind if we are killed then.
    """
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None:
        children = multiprocessing.active_children()
        for child in children:
            child.kill()
        for child in children:
            child.join(KILLED_SECONDS)


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """Ctrl-C is for the parent, and a task that interrupts its own process must not end us."""


def configure_log(level: int) -> None:
    """Warnings of ours go to stderr, unless the configuration says otherwise.

    What is below `level` is not shown, but can be asked for: see `observe/logs.py`.
    """
    logger = logging.getLogger("shoal")
    if logger.handlers:
        return
    if any(dask.config.get(name, None) for name in LOG_SETTINGS):
        import_module("shoal.compat.log_settings").heed_configuration()
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(config.read(config.Logs).format))
    handler.setLevel(level)
    for name in ("shoal", "distributed"):  # that of old is of tasks which know it
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(handler)
            logger.propagate = False
        logger.setLevel(min(level, logging.INFO))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """As it is set: uvloop's, where it is installed; None: what asyncio takes.

    Raises:
        SettingError: uvloop is insisted on, and not installed.
    """
    wanted = config.read(config.Comm).event_loop
    if wanted == "asyncio":
        return None
    try:
        import uvloop
    except ImportError as error:
        if wanted == "auto":
            return None
        raise config.SettingError(
            config.full_name_of("comm.event-loop"),
            "it is 'uvloop', and that is not installed",
            "Install it (pip install uvloop), or leave the setting out.",
        ) from error
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


@contextlib.contextmanager
def _plain_failures() -> Iterator[None]:
    """Options that can't be used, and a network that isn't there, are told without a traceback."""
    try:
        yield
    except (ShoalError, OSError, TypeError, ValueError) as error:
        raise SystemExit(f"{type(error).__name__}: {error}") from None


async def serve_scheduler(document: dict[str, Any], lifeline: Lifeline) -> None:
    """Run a scheduler on the socket that came with us."""
    from shoal.scheduler.shell import collecting
    from shoal.scheduler.shell.service import Scheduler

    lifeline.watch()
    sock = socket.socket(fileno=document["socket"])
    token = bytes.fromhex(document["secret"])
    with _plain_failures():
        scheduler = Scheduler(sock=sock, token=token, **document["options"])
        await scheduler
    scheduler.before_shutdown.append(lambda: lifeline.tell({"leaving": True}))
    _prepare_when_told(scheduler, lifeline)
    scheduler.scaled_by = partial(_adapt_by_parent, lifeline)
    scheduler.membership.on_sent_away = lambda pids: lifeline.tell({"sent_away": pids})
    collecting.take_over()
    lifeline.tell(
        {
            "address": scheduler.address,
            "id": str(scheduler.id),
            "services": dict(scheduler.services),
        }
    )
    await _serve(scheduler, document, lifeline)


async def _adapt_by_parent(lifeline: Lifeline, options: Mapping[str, Any]) -> str:
    """Have the cluster adapt that has started us; what it says of it, or raises."""
    outcome = await lifeline.ask("adapt", msgspec.msgpack.encode(options))
    if outcome.failure is not None:
        raise from_failure(outcome.failure)
    return outcome.value.decode()


def _prepare_when_told(scheduler: Any, lifeline: Lifeline) -> None:
    """Whoever ends the workers first is told if plugins have something to do before that."""

    async def prepare() -> None:
        scheduler.teardown_seconds_max = TEARDOWN_SECONDS_MAX
        try:
            await scheduler.prepare_to_close()
        finally:  # or it would be waited for
            lifeline.tell({"done": True})

    preparing: list[asyncio.Task[None]] = []  # only to keep it alive
    lifeline.on_prepare = lambda: preparing.append(asyncio.ensure_future(prepare()))
    scheduler.hooks.tell_of_preparations(lambda there: lifeline.tell({"prepares": there}))


async def serve_worker(document: dict[str, Any], lifeline: Lifeline) -> None:
    """Run a worker, once the scheduler listens."""
    from shoal.worker.shell.service import Worker

    lifeline.watch()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    if config.read(config.Worker).daemon:
        appear_daemonic()
    words = await lifeline.told_to_go()
    if words is None:
        return
    token = bytes.fromhex(document["secret"])
    with _plain_failures():
        options = dict(document["options"])
        plugins = load_plugins(options.pop("plugins", ()))
        if options.get("data") is not None:
            options["data"] = load_class(options["data"])
        kind = options.pop("worker_class", None)
        reconnect_seconds = options.pop("reconnect_seconds", 0.0)
        worker_class = Worker if kind is None else load_class(kind)
        worker = worker_class(words["scheduler"], token=token, plugins=plugins, **options)
        worker.reconnect_seconds = reconnect_seconds
        worker.is_watched = True
        worker.ask_nanny = lifeline.ask
        lifeline.on_told = worker.tell_topics
        worker.predecessor = words["predecessor"]

        def tell_that_it_is_there() -> None:
            lifeline.tell(
                {
                    "address": worker.address,
                    "name": worker.name,
                    "host": socket.gethostname(),
                    "nthreads": worker.nthreads,
                    "memory_limit": worker.memory_limit,
                    "resources": document["options"].get("resources", {}),
                }
            )

        worker.at_welcome = tell_that_it_is_there  # its first task may be what it dies of
        worker.at_plugins_coming = lambda: lifeline.tell({"prepared": True})
        worker.at_beat = lambda seconds: lifeline.tell({"beats": seconds})
        worker.at_first_end = lambda: lifeline.tell({"worked": True})
        if not await _started(worker, lifeline):
            return
    await _serve(worker, document, lifeline)


async def _started(worker: Any, lifeline: Lifeline) -> bool:
    """Start it; False: our end came first, as it looked for a scheduler that isn't there."""
    starting = asyncio.ensure_future(worker.start())
    end = asyncio.ensure_future(lifeline.ended())
    await asyncio.wait((starting, end), return_when=asyncio.FIRST_COMPLETED)
    end.cancel()
    if not starting.done():
        starting.cancel()
        worker.teardown_seconds_max = TEARDOWN_SECONDS_MAX
        await asyncio.wait((starting,))
    if starting.cancelled():
        return False
    await starting  # raises what kept it
    return True


async def _serve(service: Any, document: dict[str, Any], lifeline: Lifeline) -> None:
    """Let `service` run until it or the parent ends it."""
    os.dup2(document["stderr"], 2)
    os.close(document["stderr"])
    gc.collect()
    gc.freeze()
    end = asyncio.ensure_future(lifeline.ended())
    finished = asyncio.ensure_future(service.finished())
    await asyncio.wait((end, finished), return_when=asyncio.FIRST_COMPLETED)
    if end.done():  # then a task that goes on is ended with us, which nobody need be warned of
        logging.getLogger("shoal.worker").setLevel(logging.ERROR)
        service.teardown_seconds_max = TEARDOWN_SECONDS_MAX
    await service.close(reason=end.result() if end.done() else "")
    end.cancel()
    await finished
    lifeline.tell({"left": getattr(service, "close_reason", "")})
    await lifeline.said_all()
