"""Whether a worker hears what it is told, as far as its signs of life tell."""


class Hearing:
    """What was said to one worker, and what it had received at its signs of life."""

    __slots__ = (
        "is_lost",
        "nheard",
        "nsaid",
        "nsaid_asked",
        "received_bytes",
        "well_at",
    )

    def __init__(self, now: float) -> None:
        self.nsaid = 0  # messages to it,
        self.nheard = 0  # of which it has heard so many for sure
        self.received_bytes = -1  # at its latest sign of life
        self.nsaid_asked = 0  # number of the message that asked whether it hears; 0: none has
        self.well_at = now  # the latest sign of life that does not say that it hears nothing
        self.is_lost = False  # it lives, and hears nothing

    @property
    def is_asked(self) -> bool:
        """Whether it was asked, and has not said that this has come."""
        return self.nsaid_asked > self.nheard
