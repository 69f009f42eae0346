"""What programs do to a scheduler by hand: send workers away, look them up, ask if it idles."""

from __future__ import annotations

import socket
from importlib import import_module
from typing import Any

from shoal.comms.addresses import INPROC, TCP, UNIX, parse_address
from shoal.observe.clock import seconds_ahead
from shoal.scheduler.shell.idling import has_work


class ByHand:
    """The part of the service that does so."""

    @property
    def _service(self) -> Any:
        return self

    @property
    def stream_comms(self) -> dict[str, Any]:
        """The connections of workers, by address: `abort()` and `close()` end one."""
        service = self._service
        workers = list(service.machine.state.workers.values())
        return {worker.address: service.peer_of(worker).connection for worker in workers}

    def close_worker(self, worker: str) -> None:
        """Have a worker (address or name) close; what it ran is run elsewhere.

        Raises:
            KeyError: there is no such worker.
        """
        service = self._service
        found = list(service.machine.state.workers_named([str(worker)]))
        if not found:
            raise KeyError(worker)
        for each in found:
            reason = "the scheduler closes it"
            service.log_event(each.address, {"action": "closing-worker", "reason": reason})
            service.dismiss(each, reason)

    async def remove_worker(
        self, address: Any, *, stimulus_id: str, expected: bool = False, close: bool = True
    ) -> str:
        """Have a worker (address or name) close: "OK", or "already-removed" if it is not there.

        Args:
            stimulus_id, expected, close: not used; nothing is blamed, and whoever goes closes.
        """
        try:
            self.close_worker(address)
        except KeyError:
            return "already-removed"
        return "OK"

    def coerce_address(self, addr: Any, resolve: bool = True) -> str:
        """An address in full, of a worker's name or of part of an address.

        Cost: it waits for the system to look the host up, and the loop with it.

        Args:
            addr: (host, port), too.
            resolve: with numbers for its host's name.
        """
        by_name = self._service.machine.state.workers_named([str(addr)])
        if by_name:
            return str(next(iter(by_name)).address)
        found = parse_address(f"{addr[0]}:{addr[1]}" if isinstance(addr, tuple) else str(addr))
        if resolve and found.scheme not in (INPROC, UNIX):
            where = socket.getaddrinfo(found.host, found.port, type=socket.SOCK_STREAM)[0][4]
            host = str(where[0])
            host = f"[{host}]" if ":" in host else host
            return f"{found.scheme}://{host}:{found.port}"
        return str(found)

    def coerce_hostname(self, host: Any) -> str:
        """The host of a worker, by its name; else as it is given."""
        for worker in self._service.machine.state.workers_named([str(host)]):
            parsed = parse_address(worker.address)
            return parsed.host if parsed.scheme == TCP else str(worker.host)
        return str(host)

    @property
    def time_started(self) -> float:
        """When it was made (s since the epoch)."""
        return float(self._service.machine.about.started_at)

    @property
    def idle_since(self) -> float | None:
        """Since when there is nothing to do (s since the epoch); None: there is something."""
        service = self._service
        state = service.machine.state
        if has_work(state):
            return None
        records = service.machine.story.records
        moved_at = records[-1][0] + seconds_ahead() if records else 0.0
        return max(self.time_started, moved_at)

    def check_idle(self) -> float | None:
        """As `idle_since`."""
        return self.idle_since

    async def feed(
        self,
        comm: Any,
        function: Any = None,
        setup: Any = None,
        teardown: Any = None,
        interval: Any = "1s",
        **kwargs: Any,
    ) -> Any:
        """Tell over `comm` what `function(scheduler)` returns, again and again, while it lasts.

        Args:
            function: it, or its pickle; is given what `setup` returned as well, if there is one.
            setup, teardown: called before and after: `setup(scheduler)`, and
                `teardown(scheduler, state)`.
            interval: between two calls.
        """
        feeding = import_module("shoal.compat.servers.feeding")  # old names stand on us
        return await feeding.feed(self, comm, function, setup, teardown, interval)
