"""What code beside the scheduler may tell it, and ask it, of topics, metadata and logs."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any, Final, cast

from dask.typing import no_default

from shoal import config
from shoal.observe.logs import RecentLogs, shown_lines
from shoal.protocol.leaves import leaves_of, path_of, path_to_set, value_of
from shoal.protocol.logs import LogLine, WorkerLogs
from shoal.protocol.payload import dump_function
from shoal.protocol.plain import load_plain
from shoal.protocol.topics import SubscribeTopics, UnsubscribeTopics, topic_names
from shoal.scheduler.machine.on_metadata import leaves_at
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.shell.host import Host
from shoal.scheduler.shell.membership import Membership
from shoal.scheduler.shell.operations.logs import logs_of_workers

LOGGERS: Final = ("shoal.scheduler", "distributed.scheduler")
"""What the scheduler logs to, and what code beside it does that knows the name of old."""


class Telling:
    """The part of the service that tells, and remembers what was told and logged."""

    machine: SchedulerMachine
    membership: Membership
    recent_logs: RecentLogs

    def _begin_telling(self) -> None:
        """Remember from now on what is logged, and tell the time of what happens."""
        self.recent_logs = RecentLogs(config.read(config.Histories).log_records_max, *LOGGERS)
        self.machine.about.wall_ahead_seconds = time.time() - time.monotonic()

    # --- topics ------------------------------------------------------------------------------

    def log_event(self, topic: str | Collection[str], msg: Any) -> None:
        """Tell something under a topic, or several.  On the scheduler's loop.

        Args:
            msg: any value that can be pickled.
        """
        names = topic_names(topic)
        stepping = self.membership.stepping
        stepping.step(self.machine.tell, names, dump_function(msg), stepping.now())

    def get_events(self, topic: str | None = None) -> Any:
        """What was told under a topic, oldest first, or under each if none is named.

        Values that are not of builtin types are closed to the scheduler, and shown as Opaque.

        Returns:
            A tuple of (seconds since the epoch, value), or a dict of such by topic.
        """
        topics = self.machine.state.topics
        events = {
            name: tuple((event.at, load_plain(event.value)) for event in topics[name].events)
            for name in (list(topics) if topic is None else [topic])
            if name in topics
        }
        return events if topic is None else events.get(topic, ())

    def subscribe_topic(self, topic: str, client: str) -> None:
        """Send on to a client, by its name, what is told under a topic.  On the loop."""
        self._as_client(client, SubscribeTopics([topic]))

    def unsubscribe_topic(self, topic: str, client: str) -> None:
        """Send on no more."""
        self._as_client(client, UnsubscribeTopics([topic]))

    def _as_client(self, name: str, message: SubscribeTopics | UnsubscribeTopics) -> None:
        stepping = self.membership.stepping
        for client in list(self.machine.state.clients.values()):
            if client.name == name:
                now = stepping.now()
                stepping.step(self.machine.receive_from_client, client, [message], now)

    # --- metadata ----------------------------------------------------------------------------

    @property
    def task_metadata(self) -> dict[Any, Any]:
        """All metadata, as far as values are plain; others are shown as Opaque."""
        found: dict[Any, Any] = self.get_metadata([])
        return found

    def set_metadata(self, keys: Any, value: Any = None) -> None:
        """As `Client.set_metadata`.  On the scheduler's loop."""
        stepping = self.membership.stepping
        path, leaves = path_to_set(keys), leaves_of(value)
        stepping.step(self.machine.set_metadata, path, leaves, stepping.now())

    def get_metadata(self, keys: Any, default: Any = no_default) -> Any:
        """As `Client.get_metadata`, as far as values are plain; others are shown as Opaque.

        Raises:
            KeyError: there is none, and no default.
        """
        leaves = leaves_at(self.machine.state, path_of(keys))
        if leaves is not None:
            return value_of(leaves, load_plain)
        if default is no_default:
            raise KeyError(keys[-1] if isinstance(keys, list) else keys)
        return default

    # --- logs --------------------------------------------------------------------------------

    def get_logs(self, start: float = 0, n: int | None = None, timestamps: bool = False) -> Any:
        """What the scheduler has logged, the newest first.

        Args:
            start: seconds since the epoch; nothing from before.
            n: so many lines; None: all that are kept.
            timestamps: give the time of each line as well, before it.
        """
        return shown_lines(self.recent_logs.lines(), start, n, timestamps)

    async def get_worker_logs(
        self, n: int | None = None, workers: list[str] | None = None, nanny: bool = False
    ) -> dict[str, list[LogLine]]:
        """As `Client.get_worker_logs`."""
        return await logs_of_workers(cast(Host, self), WorkerLogs(0, n, workers, nanny))
