"""Locks and the claims to them, of whichever kind.

Who waits stands in an OrderedDict: its first is found at once, while in a dict that takes a step
for each that was taken away before.
"""

from collections import OrderedDict
from typing import NamedTuple

from shoal.scheduler.model.entities import Client


class Claim(NamedTuple):
    """One attempt of a client to have something, from its call to its end."""

    client: Client
    number: int  # the client's; it uses each once


class Standing(NamedTuple):
    """Since when a claim holds or waits, and for whom."""

    at: float  # s, monotonic
    by: str = ""  # the key of the task that makes it; "": none
    request: int = 0  # the call to answer, if it waits


class Lock:
    """What a number of claims may hold at once: one if it is a lock, more if it is a semaphore.

    One that nobody holds is known only while clients are there that have registered it.
    """

    __slots__ = ("held", "leases_max", "users", "waiting")

    def __init__(self, leases_max: int = 1) -> None:
        self.leases_max = leases_max
        self.held: dict[Claim, Standing] = OrderedDict()  # the oldest first
        self.waiting: dict[Claim, Standing] = OrderedDict()  # the longest waiting first
        self.users: dict[Client, None] = {}  # who registered it

    @property
    def holder(self) -> Claim:
        """The oldest claim that holds it; there has to be one."""
        return next(iter(self.held))

    def __repr__(self) -> str:
        of = f" of {self.holder.client}" if self.held else ""
        return f"<Lock{of}, {len(self.waiting)} wait>"


class Joint:
    """A claim to so many of some names, all together."""

    __slots__ = ("count", "holding", "names", "standing")

    def __init__(self, names: list[str], count: int, standing: Standing) -> None:
        self.names = names
        self.count = count
        self.standing = standing
        self.holding: list[str] = []  # all or none

    def __repr__(self) -> str:
        return f"<Joint claim to {self.count} of {self.names}, holds {self.holding}>"


class Joints:
    """All claims of that kind, and who stands in line for each name.

    Whoever is first in line for as many names as it wants holds those.  A claim gets its places in
    all lines at once, so that the oldest one that waits is never behind another that waits: no two
    wait for each other.
    """

    __slots__ = ("claims", "lines")

    def __init__(self) -> None:
        self.claims: dict[Claim, Joint] = {}
        self.lines: dict[str, dict[Claim, None]] = {}

    def __bool__(self) -> bool:
        return bool(self.claims)
