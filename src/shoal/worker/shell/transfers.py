"""Fetching results from peers, and making values of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor

from shoal.comms import CommClosedError
from shoal.comms.exchange import ReplicaExchange
from shoal.ids import Epoch, TaskId
from shoal.worker.shell.replicas import LARGE_NBYTES, Unpacked, nbytes_received, unpack


class Transfers:
    """All that this worker fetches."""

    def __init__(self, address: str, exchange: ReplicaExchange, executor: Executor) -> None:
        """`address`: our own, for failures; `executor`: where large values are loaded."""
        self._address = address
        self._exchange = exchange
        self._executor = executor

    async def fetch(
        self, peer: str, tasks: Sequence[TaskId], epoch: Epoch, nbytes_expected: int
    ) -> Unpacked:
        """Ask one peer for these; what it lacks is in neither list.

        Raises:
            OSError: it can't be reached, or broke off, or did not answer in time.

        Cost: 0.1 ms on one host, and the bytes.
        """
        try:
            answer, buffers = await self._exchange.get(peer, tasks, epoch, nbytes_expected)
        except CommClosedError:
            # The connection may have been dead for long, the peer replaced at its address.
            answer, buffers = await self._exchange.get(peer, tasks, epoch, nbytes_expected)
        except TimeoutError:
            self._exchange.forget(peer)  # what it may still send, nobody will read
            raise
        headers = answer.replicas
        if nbytes_received(headers, buffers) < LARGE_NBYTES:
            unpacked = unpack(headers, buffers, self._address)
        else:
            loop = asyncio.get_running_loop()
            unpacked = await loop.run_in_executor(
                self._executor, unpack, headers, buffers, self._address
            )
        unpacked.failed.extend(answer.failed)
        return unpacked

    async def close(self) -> None:
        """Close all connections; requests under way fail."""
        await self._exchange.close()
