"""`shoal scheduler`, which is also `dask scheduler`."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from typing import Any, Final

import click

from shoal.cli import hosting
from shoal.cli.errors import CannotWrite, OptionsClash
from shoal.cli.options import (
    INTERFACE,
    NO_TLS,
    PID_FILE,
    PRELOAD,
    PRELOAD_ARGV,
    PROTOCOL,
    Checked,
    PreloadCommand,
    absent,
    harmless,
    read_seconds,
)
from shoal.version import VERSION

DEFAULT_PORT: Final = 8786
EVERYWHERE: Final = "0.0.0.0"
PAGE_HERE: Final = "127.0.0.1:8787"
_PAGE: Final = "Let the web server in front of it do that."
OPEN_PAGE: Final = (
    "Whoever reaches that address may look, without a token: the page shows names of tasks and "
    "workers, and nothing can be done through it."
)


@click.command(cls=PreloadCommand)
@click.option(
    "--host",
    default="",
    metavar="HOST[:PORT]",
    help="Where to listen; everywhere if it is left out.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"0: a free one; {DEFAULT_PORT} if neither this nor --host says one.",
)
@INTERFACE
@PROTOCOL
@click.option(
    "--dashboard-address",
    metavar="HOST:PORT",
    help="Where the web page is, to be seen by all who reach that; for this host alone, on port "
    "8787 or the next that is free, if it is left out.",
)
@click.option("--dashboard/--no-dashboard", default=True, help="Whether there is a web page.")
@click.option(
    "--scheduler-file",
    type=click.Path(dir_okay=False),
    help="Write address and token there (mode 0600), for workers and clients.",
)
@PID_FILE
@NO_TLS
@PRELOAD
@PRELOAD_ARGV
@click.option(
    "--idle-timeout",
    type=Checked("duration", read_seconds),
    metavar="DURATION",
    help="Without work for so long, it closes; never by default.",
)
@absent("--jupyter/--no-jupyter", remedy="Start Jupyter by itself.", takes=False)
@absent("--dashboard-prefix", remedy=_PAGE)
@harmless("--show/--no-show", takes=False)
@harmless("--use-xheaders")
@click.version_option(VERSION, prog_name="shoal scheduler")
@click.pass_context
def scheduler(context: click.Context, /, **options: Any) -> None:
    """Run the scheduler until SIGINT or SIGTERM.

    SIGINT (Ctrl-C) ends the cluster.  SIGTERM ends the scheduler alone: workers keep their results,
    and they and the clients wait for a minute for one that is started in its place.

    Its address is the first line on stdout, so that a script may wait for it.  Clients and workers
    must hold its token: those of the same user on this host, or with the same home, find it by
    themselves; others are given SHOAL_TOKEN_FILE or the scheduler file.
    """
    try:
        host, port = listening_at(options.pop("host"), options.pop("port"))
    except ValueError as error:
        raise click.UsageError(str(error), context) from error
    hosting.run(lambda: _serve(host, port, **options))


def listening_at(host: str, port: int | None) -> tuple[str, int]:
    """Host and port, from --host, which may have a port or be an address of TCP, and --port.

    Raises:
        AddressError, OptionsClash: ValueErrors; it makes no sense, or says two ports.
    """
    from shoal.comms.addresses import TCP, parse_address
    from shoal.comms.errors import AddressError

    if ":" not in host or ("[" not in host and "://" not in host and host.count(":") > 1):
        return host, DEFAULT_PORT if port is None else port  # a name, or IPv6 without brackets
    found = parse_address(host, default_port=DEFAULT_PORT if port is None else port)
    if found.scheme != TCP:
        raise AddressError(host, "a scheduler that is started by hand listens on tcp://")
    if port is not None and found.port != port:
        raise OptionsClash(f"--host {host}", f"--port {port}", "Say the port once.")
    return found.host, found.port


async def _serve(
    host: str,
    port: int,
    interface: str | None,
    protocol: str,
    dashboard_address: str | None,
    dashboard: bool,
    scheduler_file: str | None,
    pid_file: str | None,
    idle_timeout: float | None,
    preload: tuple[str, ...],
    preload_argv: tuple[str, ...],
) -> None:
    from shoal.scheduler.shell import collecting
    from shoal.scheduler.shell.service import Scheduler

    hosting.allow_many_connections()
    service = Scheduler(
        host=interface or host or EVERYWHERE,
        port=port,
        token=token_to_serve_with(),
        dashboard_address=(dashboard_address or PAGE_HERE) if dashboard else None,
        idle_timeout=idle_timeout,
        preload=preload or None,
        preload_argv=preload_argv,
    )
    async with service:
        collecting.take_over()
        links = [] if service.http_server is None else _links(service)
        with hosting.pid_file(pid_file), _scheduler_file(scheduler_file, service):
            for line in (service.address, *links):
                click.echo(line)
            try:
                await service.finished()
            except asyncio.CancelledError as cancelled:
                if hosting.signal_of(cancelled) == signal.SIGTERM:
                    await service.step_down()
                raise


def _links(service: Any) -> list[str]:
    """The web page's address, and who may see it."""
    from shoal.comms.addresses import TCP, Address
    from shoal.observe.links import HERE, PAGE, PAGE_ON_LOOPBACK, dashboard_link, host_of_page
    from shoal.web.addresses import is_loopback_name

    page = service.http_server
    place = Address(TCP, page.host, page.port)
    reached_at = service.address if place.is_wildcard else str(place)
    links = [f"dashboard: {dashboard_link(reached_at, service.services)}"]
    if host_of_page(reached_at) != host_of_page(service.address):
        port = service.services.pop(PAGE)  # clients who look for it beside the scheduler would err
        if page.host in (HERE, "localhost"):
            service.services[PAGE_ON_LOOPBACK] = port
    return links if is_loopback_name(page.host) else [*links, OPEN_PAGE]


def token_to_serve_with() -> bytes | None:
    """What clients and workers must hold: as the environment says, else the user's own.

    None, so that a new one is made, where there is no home to keep it.  Raises TokenFileError.
    """
    from shoal.comms import TokenFileError, environment_token, user_token

    given = environment_token()
    if given is not None:
        return given
    try:
        return user_token(create=True)
    except TokenFileError:
        raise
    except OSError:
        return None


@contextlib.contextmanager
def _scheduler_file(path: str | None, service: Any) -> Iterator[None]:
    """Keep the scheduler file as long as the scheduler serves.  Raises CannotWrite."""
    if not path:
        yield
        return
    from shoal.comms.scheduler_file import remove_scheduler_file, write_scheduler_file

    identity = service.describe()
    told = {
        "type": "Scheduler",
        "id": identity.id,
        "address": identity.address,
        "services": dict(identity.services),
        "started": identity.started_at,
        "workers": {},
    }
    try:
        write_scheduler_file(path, told, service.token)
    except OSError as error:
        raise CannotWrite(path, error.strerror or str(error)) from error
    try:
        yield
    finally:
        remove_scheduler_file(path, service.address)
