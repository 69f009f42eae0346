"""`shoal worker`, which is also `dask worker`."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from shoal.cli import hosting
from shoal.cli.errors import NoSchedulerNamed, NotEnoughPorts, OptionsClash, SchedulerAbsent
from shoal.cli.options import (
    INTERFACE,
    NO_TLS,
    PID_FILE,
    PRELOAD,
    PRELOAD_ARGV,
    PROTOCOL,
    Checked,
    PreloadCommand,
    harmless,
    read_address,
    read_folder,
    read_memory,
    read_name,
    read_resources,
    read_seconds,
    read_tcp_address,
)
from shoal.version import VERSION

AUTO: Final = "auto"
_WORKER: Final = "shoal.worker.shell.service.Worker"

FILE_LOOK_SECONDS: Final = 0.05
"""Between two looks for the scheduler file, at first: network file systems tell nobody of it."""

FILE_LOOK_SECONDS_MAX: Final = 1.0
"""Between two looks later on; a thousand workers that wait shall not load the file system."""

PATIENCE_SECONDS: Final = 5.0
"""A scheduler that is not there after this long is worth a word."""

FOREVER_SECONDS: Final = 10 * 365 * 86_400.0


def read_nworkers(text: str) -> int:
    """A count; `auto` as the cores suggest; negative: so many fewer than there are cores, less 1.

    Raises ValueError.
    """
    from shoal.deploy.sharing import nprocesses_nthreads
    from shoal.observe.limits import cpu_count

    if text == AUTO:
        return nprocesses_nthreads()[0]
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither a number nor {AUTO!r}") from None
    number = cpu_count() + 1 + number if number < 0 else number
    if number < 1:
        raise ValueError(f"{text} makes {number} workers on {cpu_count()} CPUs")
    return number


def read_ports(text: str) -> list[int]:
    """`"9000"`, `"9000:9009"` or `"9000,9005"`.  Raises ValueError."""
    from shoal.worker.shell.listening import ports_asked

    ports = [port for part in text.split(",") for port in ports_asked(part.strip())]
    wrong = [port for port in ports if not 0 <= port <= 65535]
    if wrong:
        raise ValueError(f"{wrong[0]} is not a port from 0 to 65535")
    return ports


def share_ports(ports: Sequence[int] | None, nworkers: int) -> list[list[int] | None]:
    """The ports that each worker may have, each its own; None: any.

    Raises:
        NotEnoughPorts: there are fewer than workers (a ValueError).
    """
    if not ports or list(ports) == [0]:
        return [None] * nworkers
    if len(ports) < nworkers:
        raise NotEnoughPorts(len(ports), nworkers)
    return [list(ports[index::nworkers]) for index in range(nworkers)]


def _old_spelling(context: click.Context, option: click.Parameter, value: Any) -> Any:
    if value is not None:
        click.echo("--nprocs is called --nworkers today, and is taken for it.", err=True)
    return value


@click.command(cls=PreloadCommand)
@click.argument("scheduler", required=False, type=Checked("address", read_address))
@click.option(
    "--nthreads",
    type=click.IntRange(0),
    default=0,
    help="Tasks at once in each worker; 0: its share of the CPUs.",
)
@click.option(
    "--nworkers",
    type=Checked("number", read_nworkers),
    metavar="N|auto",
    help="Worker processes; 1 if it is left out.",
)
@click.option(
    "--nprocs", type=Checked("number", read_nworkers), hidden=True, callback=_old_spelling
)
@click.option(
    "--name",
    type=Checked("name", read_name),
    metavar="TEXT",
    help="Unique in the cluster; several workers get -0, -1 and so on after it.",
)
@click.option(
    "--memory-limit",
    type=Checked("size", read_memory),
    default=AUTO,
    show_default=True,
    metavar="SIZE",
    help="Of each worker: 4GB, a share such as 0.5, auto, 0 = none.",
)
@click.option(
    "--resources",
    type=Checked("amounts", read_resources),
    metavar="AMOUNTS",
    help='Abstract amounts, such as "GPU=2 MEM=10e9", of which tasks have what they ask for.',
)
@click.option(
    "--scheduler-file",
    type=click.Path(dir_okay=False),
    help="Written by the scheduler; waited for.",
)
@click.option("--host", help="Where to listen; as the scheduler's address suggests by default.")
@click.option(
    "--worker-port",
    "--port",
    "port",
    type=Checked("ports", read_ports),
    metavar="PORT|FIRST:LAST",
    help="Where to listen; of several, which workers share, the first that is free; any if none.",
)
@INTERFACE
@click.option(
    "--listen-address",
    type=Checked("address", read_tcp_address),
    metavar="ADDRESS",
    help="Where to listen, of a single worker.",
)
@click.option(
    "--contact-address",
    type=Checked("address", read_address),
    metavar="ADDRESS",
    help="What peers connect to, where that differs from where it listens.",
)
@click.option(
    "--local-directory",
    type=Checked("folder", read_folder),
    metavar="FOLDER",
    help="Where tasks may leave files, made if it is not there; a temporary one by default.",
)
@click.option(
    "--death-timeout",
    type=Checked("duration", read_seconds),
    metavar="DURATION",
    help="How long to look for the scheduler at the start; for ever by default.",
)
@click.option(
    "--nanny/--no-nanny",
    default=True,
    show_default=True,
    help="Whether the worker is a process of its own that is watched and restarted.",
)
@PID_FILE
@PROTOCOL
@NO_TLS
@PRELOAD
@click.option(
    "--preload-nanny",
    multiple=True,
    is_eager=True,
    metavar="MODULE|FILE|URL|TEXT",
    help="The same, beside the worker's process.",
)
@PRELOAD_ARGV
@click.option(
    "--worker-class",
    metavar="MODULE.CLASS",
    help="What workers are, where that is no Worker but a class of its kind.",
)
@click.option(
    "--lifetime",
    type=Checked("duration", read_seconds),
    metavar="DURATION",
    help="After so long the worker hands over what only it holds, and closes; never by default.",
)
@click.option(
    "--lifetime-stagger",
    type=Checked("duration", read_seconds),
    metavar="DURATION",
    help="Spread of that, either way, so that workers don't all leave at once.",
)
@click.option(
    "--lifetime-restart/--no-lifetime-restart",
    default=None,
    help="Whether another worker is started then; not by default.",
)
@harmless("--dashboard-address")
@harmless("--dashboard-prefix")
@harmless("--dashboard/--no-dashboard", takes=False)
@harmless("--scheduler-sni")
@harmless("--nanny-port")  # nannies listen nowhere
@click.version_option(VERSION, prog_name="shoal worker")
@click.pass_context
def worker(
    context: click.Context,
    /,
    scheduler: str | None,
    scheduler_file: str | None,
    nworkers: int | None,
    nprocs: int | None,
    nanny: bool,
    death_timeout: float | None,
    pid_file: str | None,
    **options: Any,
) -> None:
    """Run workers for the scheduler at an address (tcp://host:8786) until SIGINT or SIGTERM.

    The address of each worker is a line on stdout, once it is registered.
    """
    count = nworkers or nprocs or 1
    try:
        _check_together(count, nanny, options)
        address = None if scheduler_file else _address(scheduler)
        ports = share_ports(options.pop("port"), count)
    except ValueError as error:
        raise click.UsageError(str(error), context) from error
    each = [options_of(i, count, {**options, "port": ports[i]}) for i in range(count)]

    async def serve() -> None:
        with hosting.pid_file(pid_file):
            found = address or await _wait_for_file(str(scheduler_file), death_timeout)
            have_token(found)
            services = [_make(found, nanny, death_timeout, one) for one in each]
            await hosting.host(services, lambda: _patience(found))

    hosting.run(serve)


def _address(given: str | None) -> str:
    """The scheduler's, as the command line or the configuration says.  Raises NoSchedulerNamed."""
    import dask.config

    address = given or dask.config.get("scheduler-address", None)
    if not address:
        raise NoSchedulerNamed
    return read_address(str(address))


def _check_together(nworkers: int, nanny: bool, options: Mapping[str, Any]) -> None:
    """Raise OptionsClash for options that exclude each other."""
    if nworkers > 1 and not nanny:
        raise OptionsClash("--nworkers", "--no-nanny", "Several workers need a process each.")
    for option in ("listen_address", "contact_address"):
        if options[option] and nworkers > 1:
            raise OptionsClash(_spelt(option), "--nworkers", "Start them one by one.")
    if options["listen_address"]:
        for option in ("port", "host", "interface"):
            if options[option]:
                raise OptionsClash("--listen-address", _spelt(option), "It says both itself.")
    elif options["contact_address"] and not options["port"]:
        raise OptionsClash("--contact-address", "a random port", "Say --worker-port as well.")


def _spelt(option: str) -> str:
    return {"port": "--worker-port"}.get(option, "--" + option.replace("_", "-"))


def options_of(index: int, nworkers: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """What the worker of that number is made with; nothing that was left out."""
    from shoal.comms.addresses import parse_address
    from shoal.observe.limits import cpu_count

    host, port = options["interface"] or options["host"], options["port"] or None
    if options["listen_address"]:
        listening = parse_address(options["listen_address"])
        host, port = listening.host, listening.port
    name = options["name"]
    found = {
        "host": host,
        "port": port,
        "name": name if name is None or nworkers == 1 else f"{name}-{index}",
        "nthreads": options["nthreads"] or max(1, cpu_count() // nworkers),
    }
    for option in ("contact_address", "local_directory", "memory_limit", "resources"):
        found[option] = options[option]
    found["worker_class"] = options.get("worker_class")
    for option in ("lifetime", "lifetime_stagger", "lifetime_restart"):
        found[option] = options.get(option)
    for option in ("preload", "preload_argv", "preload_nanny"):
        found[option] = list(options.get(option, ())) or None
    return {option: value for option, value in found.items() if value is not None}


def have_token(address: str) -> None:
    """Make the user's token if no other is to be found: the scheduler, if it comes later, reads it.

    Raises:
        TokenFileError: one that would decide isn't for our eyes only.
    """
    from shoal.comms import TokenFileError, find_token, user_token

    try:
        if find_token(address) is None:
            user_token(create=True)
    except TokenFileError:
        raise
    except OSError:
        return  # no home to keep it; the worker says what it lacks


async def _wait_for_file(path: str, death_seconds: float | None) -> str:
    """The address that a scheduler has written; its token is known to this process from then on.

    Raises:
        SchedulerAbsent: it did not come in time.
        TokenFileError: the file holds a token, and isn't for our eyes only.
    """
    from shoal.comms import publish_token
    from shoal.comms.scheduler_file import read_scheduler_file

    seconds = FOREVER_SECONDS if death_seconds is None else death_seconds
    try:
        async with asyncio.timeout(seconds):
            with _patience(f"file {path}"):
                pause_seconds = FILE_LOOK_SECONDS
                while (found := read_scheduler_file(path)) is None:
                    await asyncio.sleep(pause_seconds)
                    pause_seconds = min(1.5 * pause_seconds, FILE_LOOK_SECONDS_MAX)
    except TimeoutError:
        raise SchedulerAbsent(path, seconds) from None
    if found.token is not None:
        publish_token(found.address, found.token, file=False)
    return found.address


@contextlib.contextmanager
def _patience(where: str) -> Iterator[None]:
    """Say what we wait for, if it takes long."""

    def tell() -> None:
        click.echo(f"No scheduler at {where} yet: still looking.", err=True)

    timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, tell)
    try:
        yield
    finally:
        timer.cancel()


def _make(
    address: str, nanny: bool, death_seconds: float | None, options: Mapping[str, Any]
) -> Any:
    """A worker, or a nanny with one, that is not started yet."""
    from shoal import config

    seconds = FOREVER_SECONDS if death_seconds is None else death_seconds
    reconnect_seconds = config.read(config.Worker).reconnect_seconds
    if nanny:
        from shoal.nanny.service import Nanny

        nanny_of_it = Nanny(address, death_timeout=seconds, **options)
        nanny_of_it.have_it_reconnect(reconnect_seconds)
        return nanny_of_it
    options = {option: x for option, x in options.items() if option != "preload_nanny"}

    import dask.config

    from shoal.client.dask_settings import settings_with_client
    from shoal.deploy.child import SWITCH_INTERVAL_SECONDS
    from shoal.nanny.document import limit_native_threads
    from shoal.observe.asked import class_named

    limit_native_threads()  # before anything of the user's is imported
    worker_class = class_named(options.pop("worker_class", _WORKER))
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    dask.config.set(settings_with_client())  # tasks have a client
    made = worker_class(address, death_timeout=seconds, **options)
    made.reconnect_seconds = reconnect_seconds
    return made
