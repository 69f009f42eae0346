"""`shoal demo`: the main job in small, on real data, checked and shown."""

from __future__ import annotations

import tempfile
import time

import click

from shoal.cli import flights
from shoal.cli.display import Display, choose_display
from shoal.cli.errors import BadUsage, NotInstalled
from shoal.cli.options import OneLineCommand

NWORKERS = 2


@click.command(cls=OneLineCommand)
@click.option("--stay", is_flag=True, help="Keep the cluster and its page until a key is pressed.")
@click.pass_context
def demo(context: click.Context, stay: bool) -> None:
    """Ask 336,776 real flights which were late, on a cluster of two worker processes."""
    try:
        folder = flights.find_folder()
    except NotInstalled as error:
        raise BadUsage(context.command_path, str(error)) from error
    display = choose_display()
    with tempfile.TemporaryDirectory(prefix="shoal-flights-") as scratch:
        file = flights.unpack(folder, scratch)
        airlines = flights.read_airlines(folder)
        partitions = flights.read_partitions(file)

        from shoal.client.client import Client

        started_at = time.perf_counter()
        with Client(n_workers=NWORKERS, threads_per_worker=1) as client:
            ready_at = time.perf_counter()
            display.say(
                f"{NWORKERS} worker processes, ready after {ready_at - started_at:.1f} s, will "
                f"read {file.stat().st_size / 1e6:.0f} MB in {partitions.npartitions} partitions"
            )
            if client.dashboard_link:
                display.say(f"watch them at {client.dashboard_link}")
            with display.progress("partitions read") as on_partition:
                found, nflights = flights.read_and_ask(client, partitions, airlines, on_partition)
            seconds = time.perf_counter() - ready_at
            ntasks = client.run_on_scheduler(flights.count_finished)
            flights.check(found, file, airlines)
            _show(display, flights.by_airline(found))
            display.say(
                f"{nflights:,} flights in {len(found):,} groups by carrier, month and hour: "
                f"{ntasks} tasks, {seconds:.2f} s"
            )
            display.say("pandas alone finds the same")
            if stay:
                click.pause("Press any key to end the cluster. ")


def _show(display: Display, lines: list[flights.Line]) -> None:
    heads = "airline", "flights", "mean delay", "worst month", "worst hour"
    rows = [
        (
            line.airline,
            f"{line.nflights:,}",
            f"{line.delay_minutes:.1f} min",
            line.month,
            f"{line.hour}:00",
        )
        for line in lines
    ]
    display.table(heads, rows)
