"""How fast results come from peers: measured as they are fetched, told now and then."""

from typing import Final

from shoal.protocol.placement import TransfersGauged

GAUGED_BYTES_MIN: Final = 256 * 1024
"""Transfers of less say more of the way there and back than of its width."""

TOLD_BYTES: Final = 16 * 1024 * 1024
"""After so much it is told, and not only with the next sign of life."""


class TransferRates:
    """What was fetched since it was last told."""

    def __init__(self) -> None:
        self._by_peer: dict[str, tuple[int, float]] = {}  # bytes, seconds
        self._nbytes = 0

    def note(self, peer: str, nbytes: int, seconds: float) -> bool:
        """Take in one transfer; whether there is enough to be told now."""
        if nbytes < GAUGED_BYTES_MIN or seconds <= 0:
            return False
        before = self._by_peer.get(peer, (0, 0.0))
        self._by_peer[peer] = (before[0] + nbytes, before[1] + seconds)
        self._nbytes += nbytes
        return self._nbytes >= TOLD_BYTES

    def take(self) -> TransfersGauged | None:
        """What there is to tell, once; None if there is nothing."""
        if not self._by_peer:
            return None
        peers = list(self._by_peer)
        sums = list(self._by_peer.values())
        self._by_peer.clear()
        self._nbytes = 0
        return TransfersGauged(peers, [n for n, _ in sums], [seconds for _, seconds in sums])
