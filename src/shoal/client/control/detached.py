"""Tasks that nobody waits for."""

from __future__ import annotations

from typing import Any

from shoal.client.lifecycle import ClientBase
from shoal.ids import Key
from shoal.protocol.detached import DetachedTasks
from shoal.protocol.keys import from_canonical


class Detached(ClientBase):
    """`fire_and_forget_tasks`; such tasks are made by the function `fire_and_forget`."""

    async def fire_and_forget_tasks(self) -> dict[Any, str]:
        """Key -> state, at the scheduler, of each task that was fired and forgotten, by any client,
        and has not ended.  `cancel` takes the keys."""
        states: dict[Key, str] = await self.session.call(DetachedTasks)
        return {from_canonical(key): state for key, state in states.items()}
