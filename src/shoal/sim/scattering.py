"""One scatter of a client under way, as its session goes about it.

Ask where the values shall go, put them there, ask again for those that anybody refused, and give up
after a few times; the user has futures only once the values are there.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from shoal.client.machine import CANCELLED, FINISHED, UNRESOLVED, ClientMachine, Record
from shoal.ids import ClientTaskId, Epoch
from shoal.protocol.messages import Failure
from shoal.protocol.transfers import Placement, PlaceScatter
from shoal.sim.oracle import scattered
from shoal.sim.plan import Scatter
from shoal.sim.specs import TaskSpec, Value
from shoal.sim.transfers import Transfers

ATTEMPTS_MAX: Final = 3
"""Times that a value is offered before the call fails."""

PAUSE_SECONDS: Final = 0.05
"""Between two attempts, once for the first, twice for the second."""


class Session(Protocol):
    """The part of a client that a scatter uses."""

    place: str
    machine: ClientMachine

    def ask_place(self, call: "ScatterCall", specs: Sequence[TaskSpec], make: "Make") -> None:
        """Say the PlaceScatter that `make` makes of a request's number."""

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something later, if the client still is there then."""


Make = Callable[[int], PlaceScatter]


class _Parcel:
    """One value on its way."""

    __slots__ = ("is_refused", "placement", "record", "spec")

    def __init__(self, record: Record, spec: TaskSpec) -> None:
        self.record = record
        self.spec = spec
        self.placement: Placement | None = None
        self.is_refused = False  # by any of those that were to take it


class ScatterCall:
    """A call of `scatter`, from its first question until its futures are there, or it raises."""

    def __init__(
        self,
        session: Session,
        transfers: Transfers,
        records: Sequence[Record],
        specs: Sequence[TaskSpec],
        act: Scatter,
    ) -> None:
        """`records`: wanted by nobody before; each holds one future, which is this call's."""
        self.records = list(records)
        self._session = session
        self._transfers = transfers
        self._act = act
        self._by_number = {r.number: _Parcel(r, s) for r, s in zip(records, specs, strict=True)}
        self._nattempts = 0
        self._npending = 0  # questions and puts that are not answered
        self._left = list(self._by_number.values())
        self._is_placed = False

    def start(self) -> None:
        """Ask where those values shall go that were refused; consecutive ones together."""
        self._nattempts += 1
        # What was cancelled meanwhile must not be wanted again under its old number.
        self._left = [parcel for parcel in self._left if parcel.record.status != CANCELLED]
        if not self._left:
            self._is_placed = True
            return
        run: list[_Parcel] = []
        for parcel in self._left:
            if run and run[-1].record.number + 1 != parcel.record.number:
                self._ask(run)
                run = []
            run.append(parcel)
        self._ask(run)

    def _ask(self, parcels: list[_Parcel]) -> None:
        self._npending += 1
        again = self._nattempts > 1
        specs = [parcel.spec for parcel in parcels]

        def make(request: int) -> PlaceScatter:
            return PlaceScatter(
                request,
                parcels[0].record.number,
                [spec.key for spec in specs],
                [spec.nbytes for spec in specs],
                list(self._act.workers),
                self._act.ncopies,
                again,
            )

        self._session.ask_place(self, specs, make)

    def placed(self, first: ClientTaskId, placements: Sequence[Placement]) -> None:
        """The scheduler says where values shall go, of which `first` is the first."""
        self._npending -= 1
        for i, placement in enumerate(placements):
            parcel = self._by_number[ClientTaskId(first + i)]
            parcel.placement = placement
            parcel.is_refused = False
            if placement.workers:  # else nothing is on its way
                self._session.machine.place_again(parcel.record)
        if self._npending == 0:
            self._send()

    def refused(self, failure: Failure) -> None:
        """The scheduler would not say: the call raises."""
        self._give_up(failure)

    def _send(self) -> None:
        epoch = self._session.machine.epoch or Epoch(0)
        puts = [
            (parcel, placement, address)
            for parcel in self._left
            if (placement := parcel.placement) is not None
            for address in placement.workers
        ]
        self._npending += len(puts)
        for parcel, placement, address in puts:
            value = Value(scattered(parcel.spec), parcel.spec.nbytes)
            self._transfers.put(
                self._session.place,
                epoch,
                address,
                placement.task,
                parcel.record.key,
                value,
                partial(self._hear_of_put, parcel),
            )
        if not puts:
            self._is_placed = True

    def _hear_of_put(self, parcel: _Parcel, is_taken: bool | None) -> None:
        self._session.after(0.0, partial(self._put_ended, parcel, is_taken))

    def _put_ended(self, parcel: _Parcel, is_taken: bool | None) -> None:
        self._npending -= 1
        if not is_taken:
            parcel.is_refused = True
        if self._npending:
            return
        self._left = [parcel for parcel in self._left if parcel.is_refused]
        if not self._left:
            self._is_placed = True
        elif self._nattempts < ATTEMPTS_MAX:
            self._session.after(PAUSE_SECONDS * self._nattempts, self.start)
        else:
            self._give_up(Failure(b"", "OSError: no worker takes the value"))

    def _give_up(self, failure: Failure) -> None:
        self._is_placed = True
        for record in self.records:
            self._session.machine.fail(record, failure)

    def ended(self) -> list[Record] | None:
        """The records that the user gets futures of, once all have ended; None until then.

        Of the others this call's futures are to be released.
        """
        if not self._is_placed or any(r.status in UNRESOLVED for r in self.records):
            return None
        good = [record for record in self.records if record.status == FINISHED]
        return good if len(good) == len(self.records) else []
