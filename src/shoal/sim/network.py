"""Connections: ordered within each, free between them, and broken rather than lossy.

That is what TCP promises.  So nothing is lost or said twice inside a connection; it may be slow, it
may stall, and it may break: then each side notices at a time of its own, and of what was under way
a first part arrives and the rest does not.  One side may be *deaf*: what is said to it is under way
until that is mended, or the connection breaks; what it says arrives all the time.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from shoal.sim.streams import Streams
from shoal.sim.world import World

Receive: TypeAlias = Callable[[Any], None]
Closed: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Weather:
    """What links are like in one run; all in seconds."""

    delay_seconds: float = 0.0005  # mean of what each batch takes
    detour_ratio: float = 0.0  # of batches that take far longer
    detour_seconds: float = 0.05
    bytes_per_second: float = 1e10  # of values between workers
    notice_seconds: float = 0.02  # mean of what a side takes to notice that a connection broke
    constant: bool = False  # no chance at all: for a smaller story of a failure


CALM: Final = Weather()
"""Short delays, and no surprises."""


class Network:
    """All links: how slow they are now, and who can't reach whom."""

    def __init__(self, world: World, streams: Streams, weather: Weather) -> None:
        self.world = world
        self.weather = weather
        self._streams = streams
        self._stalled_until: dict[tuple[str, str], float] = {}
        self._slow: dict[tuple[str, str], tuple[float, float]] = {}  # (factor, until)
        self._cut_until: dict[tuple[str, str], float] = {}
        self._deaf: dict[End, None] = {}

    def stall(self, a: str, b: str, until: float) -> None:
        """Nothing arrives between the two, either way, before `until`."""
        for link in ((a, b), (b, a)):
            self._stalled_until[link] = max(until, self._stalled_until.get(link, 0.0))

    def slow(self, a: str, b: str, factor: float, until: float) -> None:
        """Everything takes `factor` times as long between the two before `until`."""
        self._slow[a, b] = self._slow[b, a] = (factor, until)

    def cut(self, a: str, b: str, until: float) -> None:
        """Neither can reach the other before `until`, though both reach everybody else."""
        self._cut_until[a, b] = self._cut_until[b, a] = until

    def deafen(self, end: "End") -> None:
        """Nothing that is said to `end` arrives there until it is mended."""
        end.is_deaf = True
        self._deaf[end] = None

    def mend(self, end: "End") -> None:
        """What was said to it meanwhile arrives, in order, before all that is said later."""
        self._deaf.pop(end, None)
        end.hear_again()

    def heal(self) -> None:
        """End every stall, slowness, cut and deafness."""
        for end in list(self._deaf):
            self.mend(end)
        self._stalled_until.clear()
        self._slow.clear()
        self._cut_until.clear()

    def is_cut(self, a: str, b: str) -> bool:
        """Whether an attempt to reach one from the other fails now."""
        return self._cut_until.get((a, b), 0.0) > self.world.now

    def delay(self, a: str, b: str) -> float:
        """Seconds that something sent now from `a` to `b` takes, stalls left out."""
        weather = self.weather
        if weather.constant:
            return weather.delay_seconds
        dice = self._streams.of(f"link {a} {b}")
        seconds = dice.expovariate(1.0) * weather.delay_seconds
        if dice.random() < weather.detour_ratio:
            seconds += dice.random() * weather.detour_seconds
        factor, until = self._slow.get((a, b), (1.0, 0.0))
        return seconds * factor if until > self.world.now else seconds

    def notice(self, who: str, of: str) -> float:
        """Seconds until `who` notices that a connection to `of` has broken."""
        if self.weather.constant:
            return self.weather.notice_seconds
        return self._streams.of(f"notice {who} {of}").expovariate(1.0) * self.weather.notice_seconds

    def arrival(self, a: str, b: str) -> float:
        """When something sent now from `a` to `b` arrives, by itself."""
        return max(self.world.now + self.delay(a, b), self._stalled_until.get((a, b), 0.0))

    def is_stalled(self, a: str, b: str) -> bool:
        """Whether nothing gets from `a` to `b` now."""
        return self._stalled_until.get((a, b), 0.0) > self.world.now

    def connect(self, a: str, b: str) -> "Connection":
        """A new connection; both sides must say how they receive before anything arrives."""
        return Connection(self, a, b)


class End:
    """One side of a connection: what it does with what arrives, and what is on its way to it."""

    __slots__ = ("_arriving", "_latest", "connection", "is_closed", "is_deaf", "nwithheld",
                 "on_closed", "on_messages", "other", "owner")  # fmt: skip

    def __init__(self, connection: "Connection", owner: str) -> None:
        self.connection = connection
        self.owner = owner
        self.other: End
        self.on_messages: Receive
        self.on_closed: Closed
        self.is_closed = False  # this side knows that it is over
        self.is_deaf = False
        self.nwithheld = 0  # batches that would have arrived if it was not deaf
        self._arriving: deque[Any] = deque()
        self._latest = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether neither side has ended the connection, and nothing has broken it."""
        return not (self.is_closed or self.other.is_closed or self.connection.is_broken)

    def send(self, batch: Any) -> None:
        """Say `batch` to the other side; into the void if the connection has broken."""
        if not self.is_closed and not self.connection.is_broken:
            self.other._expect(batch)

    def close(self) -> None:
        """Let go of the connection; the other side notices after all that was said before."""
        if self.is_closed:
            return
        self.is_closed = True
        if not self.connection.is_broken:
            self.other._expect(None)

    def drop(self) -> None:
        """Be gone without a word to oneself, as a killed process is; the other side notices."""
        self.is_closed = True
        self.connection.break_now()

    def _expect(self, batch: Any) -> None:
        network = self.connection.network
        arrives_at = max(self._latest, network.arrival(self.other.owner, self.owner))
        self._latest = arrives_at
        self._arriving.append(batch)
        network.world.at(arrives_at, self._arrive)

    def _arrive(self) -> None:
        network = self.connection.network
        if network.is_stalled(self.other.owner, self.owner) and not self.is_closed:
            # The stall began while this was under way.
            later = network.arrival(self.other.owner, self.owner)
            self._latest = max(self._latest, later)
            network.world.at(later, self._arrive)
            return
        if self.is_deaf and not self.is_closed:
            self.nwithheld += 1
            return
        batch = self._arriving.popleft()
        if self.is_closed:
            return
        if batch is None:
            self.is_closed = True
            self.on_closed()
        else:
            self.on_messages(batch)

    def hear_again(self) -> None:
        """It is deaf no more."""
        self.is_deaf = False
        nwithheld, self.nwithheld = self.nwithheld, 0
        for _ in range(nwithheld):
            self.connection.network.world.after(0.0, self._arrive)

    def notice(self) -> None:
        """The connection is over, and this side sees it now."""
        if not self.is_closed:
            self.is_closed = True
            self.on_closed()


class Connection:
    """Two ends, and whether there is still anything between them."""

    __slots__ = ("a", "b", "is_broken", "network")

    def __init__(self, network: Network, a: str, b: str) -> None:
        self.network = network
        self.a = End(self, a)
        self.b = End(self, b)
        self.a.other, self.b.other = self.b, self.a
        self.is_broken = False

    def break_now(self) -> None:
        """Nothing said from now on arrives; each side notices at a time of its own."""
        if self.is_broken:
            return
        self.is_broken = True
        for end in (self.a, self.b):
            notice = self.network.notice(end.owner, end.other.owner)
            self.network.world.after(notice, end.notice)
