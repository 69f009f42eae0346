"""`client.amm`: the rounds that drop copies which nobody needs, as clients steer them."""

from __future__ import annotations

from typing import Any

from shoal.protocol import replicas
from shoal.protocol.replicas import SteerRounds


class RoundsOfScheduler:
    """Begin and end the rounds over copies of results, or have one.

    Its methods are awaited where the client is asynchronous, or on its loop; elsewhere they wait.
    """

    def __init__(self, client: Any) -> None:
        """`client`: the face that the user holds."""
        self._client = client

    def __repr__(self) -> str:
        return f"<rounds over copies of results, of the scheduler at {self._address}>"

    @property
    def _address(self) -> str:
        return str(self._client.session.address)

    def start(self) -> Any:
        """Have rounds from now on; nothing happens if there are some."""
        return self._hand_over(self._steer(replicas.START))

    def stop(self) -> Any:
        """Have none any more: copies stay as long as their task."""
        return self._hand_over(self._steer(replicas.STOP))

    def run_once(self) -> Any:
        """Have one round; returns when it is decided what is dropped."""
        return self._hand_over(self._steer(replicas.RUN_ONCE))

    def running(self) -> Any:
        """Whether rounds come by themselves: True or False."""
        return self._hand_over(self._ask())

    async def _steer(self, word: str) -> None:
        await self._client.session.call(lambda request: SteerRounds(request, word))

    async def _ask(self) -> bool:
        running: bool = await self._client.session.call(
            lambda request: SteerRounds(request, replicas.RUNNING)
        )
        return running

    def _hand_over(self, work: Any) -> Any:
        return self._client.hand_over(work) if self._client.is_blocking else work
