"""How many tasks of a name may run at once in the whole cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.client.lifecycle import ClientBase
from shoal.protocol.limits import GetLimits, LimitSeen, SetLimits
from shoal.units import to_count


class Limits(ClientBase):
    """`set_limits` and `get_limits`."""

    async def set_limits(
        self, limits: Mapping[str, int | None] | None = None, **further: int | None
    ) -> dict[str, dict[str, int | None]]:
        """Have no more than so many tasks run at once that name each of these in their `limits`.

        That holds for all clients and for tasks that wait already, whatever they say themselves,
        until it is set anew; what runs goes on.  0: none of them begins; None: as tasks say.

        Args:
            limits, further: number by name: `set_limits({"db": 8})`, or `set_limits(db=8)`.

        Returns:
            How all limits stand, as `get_limits`.

        Raises:
            TypeError, ValueError: this is no number from 0 on.
        """
        numbers = {
            str(name): None if number is None else to_count(f"The limit {name!r}", number)
            for name, number in {**(limits or {}), **further}.items()
        }
        return _shown(await self.session.call(lambda request: SetLimits(request, numbers)))

    async def get_limits(self) -> dict[str, dict[str, int | None]]:
        """All names that are set, run or waited for.

        Returns:
            By name: `limit` (as it is set; None: as tasks say), `running` and `waiting` (tasks).
        """
        return _shown(await self.session.call(GetLimits))


def _shown(seen: dict[str, LimitSeen]) -> dict[str, dict[str, Any]]:
    return {
        name: {"limit": each.nruns_max, "running": each.nruns, "waiting": each.nwaiting}
        for name, each in seen.items()
    }
