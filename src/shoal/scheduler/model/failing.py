"""Workers on which run after run fails."""

from shoal.scheduler.model.entities import Prefix


class Failing:
    """What is known of one of them, since a run last ended well there."""

    __slots__ = ("nfailed", "nfinished_before", "nturns", "until")

    def __init__(self) -> None:
        self.nfailed = 0  # runs, one after the other
        self.nfinished_before: dict[Prefix, int] = {}  # of kinds that failed -> runs that had ended
        # well by the first of these, anywhere
        self.nturns = 0  # times that it was put in quarantine
        self.until: float | None = None  # s, monotonic; None: it is not in quarantine
