"""What a cluster's scheduler answers to by name, for code on the cluster's loop."""

from __future__ import annotations

from typing import Any

from shoal.observe.handling import value_of
from shoal.protocol.named import CallNamed
from shoal.protocol.payload import dump_function
from shoal.protocol.running import Outcome


class SchedulerByName:
    """`await scheduler.<operation>(argument=value)`, by the cluster's own connection."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster

    def __repr__(self) -> str:
        return f"<operations of the scheduler at {self.address}>"

    @property
    def address(self) -> str:
        """Where the scheduler is."""
        return str(self._cluster.scheduler_address)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        async def call(**arguments: Any) -> Any:
            packed = dump_function(arguments)
            outcome: Outcome = await self._cluster._ask(
                lambda request: CallNamed(request, name, packed)
            )
            return next(value_of(outcome))

        call.__name__ = call.__qualname__ = name
        return call
