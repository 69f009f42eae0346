"""What a nanny answers to by name.

It listens to nobody: `scheduler.broadcast(msg=..., nanny=True)` reaches it by way of its worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final
from uuid import uuid4

from shoal.comms.addresses import parse_address
from shoal.comms.functions import call_function
from shoal.nanny.logs import remember_logs
from shoal.observe.handling import Caller, Handler, outcome_of, report_of
from shoal.observe.logs import shown_lines
from shoal.protocol.running import Outcome

BY_NAME: Final[Mapping[str, str]] = {
    "close_gracefully": "close_gracefully",
    "echo": "echo",
    "get_logs": "get_logs",
    "identity": "identity",
    "instantiate": "instantiate",
    "kill": "kill",
    "plugin_add": "plugin_add",
    "plugin_remove": "plugin_remove",
    "restart": "restart",
    "run": "run",
    "terminate": "close",
    "versions": "versions",
}
"""Operation -> the method that answers to it."""


class Named:
    """The part of a nanny that is called by name, and what it tells when it is asked so."""

    @cached_property
    def handlers(self) -> dict[str, Handler]:
        """What it answers to by name; programs may add to it."""
        return {name: getattr(self, method) for name, method in BY_NAME.items()}

    @property
    def _keeper(self) -> Any:
        return self

    async def answer_by_name(self, name: str, arguments: bytes) -> Outcome:
        """Call what is there under a name; whatever is raised is the outcome."""
        who = f"the nanny of {self._keeper.worker_address}"
        caller = Caller(self._keeper.worker_address)
        return await outcome_of(who, self.handlers, name, arguments, caller)

    @cached_property
    def id(self) -> str:
        """What it is called, by nobody else."""
        return f"Nanny-{uuid4()}"

    @property
    def ip(self) -> str:
        """The host of its worker; empty while there is none."""
        address = self._keeper.worker_address
        return parse_address(address).host if address else ""

    @property
    def worker_dir(self) -> str:
        """The folder of its worker; empty while there is none."""
        return str(self._keeper.words.get("local_directory", ""))

    def identity(self) -> dict[str, Any]:
        """What it is, in plain types."""
        nanny = self._keeper
        return {
            "type": "Nanny",
            "id": self.id,
            "scheduler": nanny.scheduler_addr,
            "worker": nanny.worker_address,
            "pid": nanny.pid,
            "name": nanny.name,
            "nthreads": nanny.nthreads,
            "memory_limit": nanny.memory_limit,
            "status": nanny.status.value,
        }

    def echo(self, data: Any = None) -> Any:
        """What it is given."""
        return data

    def versions(self, packages: Iterable[str] | None = None) -> dict[str, Any]:
        """What is installed where it runs: `host` and `packages`."""
        from shoal.observe.versions import get_versions

        return get_versions(packages)

    def get_logs(self, start: float = 0, n: int | None = None, timestamps: bool = False) -> Any:
        """What the nannies of its process have logged, the newest first.

        Args:
            start: seconds since the epoch; nothing from before.
            n: so many lines; None: all that are kept.
            timestamps: give the time of each line as well, before it.
        """
        return shown_lines(remember_logs().lines(), start, n, timestamps)

    async def run(self, comm: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Call a function here: `{"status": "OK", "result": ...}`, or `error` and the exception.

        Args:
            args, kwargs: `function`, `args`, `wait` and `kwargs`, as for a worker's `run`; the
                function is given `dask_worker=`, the nanny, if it takes that.
        """
        return await self._run(*args, **kwargs)

    async def _run(
        self,
        function: Any,
        args: Any = (),
        wait: bool = True,
        kwargs: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        offered = {"dask_worker": self}
        return await report_of(call_function, function, args, kwargs, offered, wait=wait)
