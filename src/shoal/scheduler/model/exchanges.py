"""What values and signals are handed over by: events, queues, variables and channels."""

from collections import OrderedDict, deque
from typing import NamedTuple

from shoal.ids import ClientTaskId
from shoal.scheduler.model.entities import Client
from shoal.scheduler.model.locks import Claim, Standing


class Event:
    """Set or not; one that is neither set nor waited for is not known."""

    __slots__ = ("is_set", "waiting")

    def __init__(self) -> None:
        self.is_set = False
        self.waiting: dict[Claim, Standing] = {}

    def __repr__(self) -> str:
        return f"<Event {'set' if self.is_set else 'not set'}, {len(self.waiting)} wait>"


class Item(NamedTuple):
    """A value, and the wants that keep its futures."""

    value: list[bytes]
    wants: list[ClientTaskId]


class Putting(NamedTuple):
    """A value that waits for room in a queue."""

    item: Item
    standing: Standing


class Taking(NamedTuple):
    """A wait for so many values of a queue."""

    nvalues: int
    standing: Standing


class Queue:
    """Values in their order, and who waits for some or for room."""

    __slots__ = ("items", "putting", "size_max", "taken", "taking", "users")

    def __init__(self) -> None:
        self.size_max = 0  # 0: no limit
        self.items: deque[Item] = deque()
        self.putting: dict[Claim, Putting] = OrderedDict()
        self.taking: dict[Claim, Taking] = OrderedDict()
        self.taken: dict[Claim, list[Item]] = {}  # on their way, and not received yet
        self.users: dict[Client, None] = {}

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing in it, nor anybody waiting."""
        return not (self.items or self.putting or self.taking or self.taken)

    def __repr__(self) -> str:
        return f"<Queue of {len(self.items)}, {len(self.taking)} wait>"


class Variable:
    """A value, if it has one, and who waits for it."""

    __slots__ = ("item", "taken", "waiting")

    def __init__(self) -> None:
        self.item: Item | None = None
        self.waiting: dict[Claim, Standing] = {}
        self.taken: dict[Claim, list[ClientTaskId]] = {}  # wants of futures on their way

    def __repr__(self) -> str:
        return f"<Variable {'set' if self.item else 'not set'}, {len(self.waiting)} wait>"


class Channel:
    """Who is told what is published."""

    __slots__ = ("subscribers",)

    def __init__(self) -> None:
        self.subscribers: dict[Claim, Standing] = {}

    def __repr__(self) -> str:
        return f"<Channel of {len(self.subscribers)}>"
