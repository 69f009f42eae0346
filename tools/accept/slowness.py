"""How slow this machine is, for limits in processor time: they are of one, see decision 38."""

from benchmarks import yardstick


class Slowness:
    """Of the minutes in which something is measured; to be looked at before, after and between."""

    def __init__(self) -> None:
        self._sticks: list[float] = []
        self.look()

    def look(self) -> None:
        """Measure the yardstick three times.  Cost: a tenth of a second of work."""
        self._sticks += [yardstick.measure_us() for _ in range(3)]

    @property
    def factor(self) -> float:
        """How many times longer the same work takes here than where the limits are from."""
        return yardstick.slowness(self._sticks)

    def keeps(self, measured: float, most: float) -> bool:
        """Whether so much processor time is at most `most` on the machine of the limits."""
        return measured <= most * self.factor

    def __str__(self) -> str:
        return f"{self.factor:.2f} times as slow"
