"""Fetching results from peers, and making values of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from time import perf_counter

from shoal.comms import CommClosedError
from shoal.comms.exchange import ReplicaExchange
from shoal.ids import Epoch, TaskId
from shoal.protocol.placement import TransfersGauged
from shoal.worker.shell.rates import TransferRates
from shoal.worker.shell.replicas import LARGE_NBYTES, Unpacked, nbytes_received, unpack


class Transfers:
    """All that this worker fetches."""

    def __init__(
        self,
        address: str,
        exchange: ReplicaExchange,
        executor: Executor,
        tell: Callable[[TransfersGauged], object],
    ) -> None:
        """`address`: our own, for failures; `executor`: where large values are loaded; `tell`: how
        fast much came."""
        self._address = address
        self._exchange = exchange
        self._executor = executor
        self._tell = tell
        self._rates = TransferRates()

    async def fetch(
        self, peer: str, tasks: Sequence[TaskId], epoch: Epoch, nbytes_expected: int
    ) -> Unpacked:
        """Ask one peer for these; what it lacks is in neither list.

        Raises:
            OSError: it can't be reached, or broke off, or did not answer in time.

        Cost: 0.1 ms on one host, and the bytes.
        """
        began_at = perf_counter()
        try:
            answer, buffers = await self._exchange.get(peer, tasks, epoch, nbytes_expected)
        except CommClosedError:
            # The connection may have been dead for long, the peer replaced at its address.
            answer, buffers = await self._exchange.get(peer, tasks, epoch, nbytes_expected)
        except TimeoutError:
            self._exchange.forget(peer)  # what it may still send, nobody will read
            raise
        headers = answer.replicas
        nbytes = nbytes_received(headers, buffers)
        if self._rates.note(peer, nbytes, perf_counter() - began_at):
            self.tell_rates()
        if nbytes < LARGE_NBYTES:
            unpacked = unpack(headers, buffers, self._address)
        else:
            loop = asyncio.get_running_loop()
            unpacked = await loop.run_in_executor(
                self._executor, unpack, headers, buffers, self._address
            )
        unpacked.failed.extend(answer.failed)
        return unpacked

    def tell_rates(self) -> None:
        """Tell how fast results came, if that was not told."""
        gauged = self._rates.take()
        if gauged is not None:
            self._tell(gauged)

    async def close(self) -> None:
        """Close all connections; requests under way fail."""
        await self._exchange.close()
