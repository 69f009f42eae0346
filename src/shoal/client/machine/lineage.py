"""What a client has said that its live wants may need, so that another scheduler can be told.

Nothing is counted as wants come and go: once what is kept has doubled, it is gone through, from the
latest message to the first, and what no live want needs any more is let go of.  Pure.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import msgspec

from shoal.ids import ClientTaskId, CodeId, Key
from shoal.protocol.actors import PromiseValue
from shoal.protocol.detached import DetachTasks
from shoal.protocol.messages import (
    CancelTasks,
    DefineClientCode,
    ForgetClientCode,
    Message,
    ReleaseTasks,
    SubmitTasks,
    WantKey,
)
from shoal.protocol.shuffles import DefineShuffles

TASKS_MIN: Final = 20_000
"""Fewer tasks than this are not gone through; so many take 10 ms."""
BYTES_MIN: Final = 16 * 2**20
"""As many bytes of functions, bundles and arguments may be kept though nobody needs them."""
TASKS_IDLE: Final = 1_000
BYTES_IDLE: Final = 2**20
"""As much is kept while nothing at all is wanted."""


class Scattered(msgspec.Struct, frozen=True, gc=False):
    """A want of a value that the client itself brings to workers."""

    task: ClientTaskId
    key: Key


Kept: TypeAlias = SubmitTasks | WantKey | PromiseValue | Scattered | DefineShuffles
Numbers: TypeAlias = Mapping[ClientTaskId, object]


class Lineage:
    """What was said, in its order.  Numbers are the client's, and each is used for one want.

    Cost: 0.2 us for each task that is said, as it is gone through twice.
    """

    def __init__(self) -> None:
        self._said: list[Kept] = []
        self._codes: dict[CodeId, bytes] = {}
        self._detached: dict[ClientTaskId, None] = {}
        self.cancelled: dict[ClientTaskId, CancelTasks] = {}  # until the scheduler confirms it
        self._unconfirmed: dict[ClientTaskId, None] = {}  # of those, as of the latest sweep
        self._ntasks = 0
        self._nbytes = 0
        self._ntasks_max, self._nbytes_max = TASKS_MIN, BYTES_MIN
        self._ntasks_idle, self._nbytes_idle = TASKS_IDLE, BYTES_IDLE

    def __len__(self) -> int:
        """How many tasks are kept."""
        return self._ntasks

    def covers(self) -> Iterable[ClientTaskId]:
        """Numbers that could be said again.  Cost: O(tasks kept)."""
        for message in self._said:
            if isinstance(message, SubmitTasks):
                yield from map(
                    ClientTaskId, range(message.first, message.first + len(message.keys))
                )
            elif not isinstance(message, DefineShuffles):
                yield message.task

    @property
    def nbytes(self) -> int:
        """Of functions, bundles and arguments."""
        return self._nbytes

    def is_due(self, nlive: int) -> bool:
        """Whether so much has come since the last time that it is to be gone through.

        Sooner if there are no live wants, as then nearly all of it goes.
        """
        if nlive:
            return self._ntasks > self._ntasks_max or self._nbytes > self._nbytes_max
        return self._ntasks > self._ntasks_idle or self._nbytes > self._nbytes_idle

    def keep(self, message: Message) -> None:
        """Something is being said."""
        if isinstance(message, SubmitTasks | WantKey):
            self._add(message)
        elif isinstance(message, DefineClientCode):
            self._codes[message.code] = message.payload
            self._nbytes += len(message.payload)
        elif isinstance(message, CancelTasks):
            self.cancelled.update(dict.fromkeys(message.tasks, message))
        elif isinstance(message, DetachTasks):
            self._detached.update(dict.fromkeys(message.tasks))
        elif isinstance(message, PromiseValue):
            self._said[-1] = message  # in place of the want of that value, noted just before
        elif isinstance(message, DefineShuffles):
            self._said.append(message)

    def keep_scattered(self, number: ClientTaskId, key: Key) -> None:
        """A value is wanted that is about to be brought to workers, which know it by its key."""
        self._add(Scattered(number, key))

    def _add(self, message: Kept) -> None:
        self._said.append(message)
        self._ntasks += _ntasks_of(message)
        self._nbytes += _nbytes_of(message)

    # --- what is still needed ----------------------------------------------------------------

    def sweep(self, live: Numbers, functions: Iterable[CodeId]) -> None:
        """Let go of what none of the `live` wants needs.

        Args:
            functions: what the scheduler has and may be used again.

        Cost: O(tasks kept), 0.2 us each.
        """
        unfinished = self._unfinished_graphs()
        roots = [*live, *self.cancelled, *self._tasks_of(unfinished)]
        needed = self._needed(roots, _never, is_exact=False)
        self._said = list(_without_ended_graphs(needed, unfinished))
        used = dict.fromkeys(functions)
        for message in self._said:
            if isinstance(message, SubmitTasks):
                used.update(dict.fromkeys(message.codes))
        self._codes = {code: payload for code, payload in self._codes.items() if code in used}
        self._detached = {number: None for number in self._detached if number in live}
        # A scheduler that does not know of a number does not confirm that it is cancelled.
        self.cancelled = {
            n: said for n, said in self.cancelled.items() if n not in self._unconfirmed
        }
        self._unconfirmed = dict.fromkeys(self.cancelled)
        self._ntasks = sum([_ntasks_of(message) for message in self._said])
        self._nbytes = sum([_nbytes_of(message) for message in self._said])
        self._nbytes += sum(map(len, self._codes.values()))
        self._ntasks_max = max(TASKS_MIN, 2 * self._ntasks)
        self._nbytes_max = self._nbytes + max(BYTES_MIN, self._nbytes // 4)
        self._ntasks_idle = 2 * self._ntasks + TASKS_IDLE
        self._nbytes_idle = 2 * self._nbytes + BYTES_IDLE

    def _needed(
        self,
        roots: Iterable[ClientTaskId],
        is_known: Callable[[ClientTaskId], bool],
        *,
        is_exact: bool,
    ) -> list[Kept]:
        """What the `roots` need, in its order.

        Args:
            is_known: of a number, whether the scheduler has its task, so that nothing is needed.
            is_exact: without any other task; else a message of which half is needed stays whole.
        """
        needed = dict.fromkeys(roots)
        defined = self._shuffled_keys()
        keys: dict[Key, None] = {}  # of barriers that are needed
        found: list[Kept] = []
        for message in reversed(self._said):
            if isinstance(message, SubmitTasks):
                places = _needed_places(message, needed, is_known)
                if defined:
                    keys.update(
                        {message.keys[i]: None for i in places if message.keys[i] in defined}
                    )
                if len(places) == len(message.keys):
                    found.append(message)
                elif is_exact or 2 * len(places) < len(message.keys):
                    found += reversed(_pieces(message, places))
                else:
                    found.append(message)
            elif isinstance(message, DefineShuffles):
                barriers = [shuffle.barrier for shuffle in message.shuffles]
                if any(key in keys or not defined[key] for key in barriers):
                    found.append(message)
            elif message.task in needed and not is_known(message.task):
                found.append(message)
        found.reverse()
        return found

    def _unfinished_graphs(self) -> dict[ClientTaskId | None, None]:
        """Graphs whose last slice was not said yet."""
        graphs: dict[ClientTaskId | None, None] = {}
        for message in self._said:
            if isinstance(message, SubmitTasks) and message.graph is not None:
                if message.ntasks_ahead:
                    graphs[message.graph] = None
                else:
                    graphs.pop(message.graph, None)
        return graphs

    def _tasks_of(self, graphs: Collection[ClientTaskId | None]) -> list[ClientTaskId]:
        """Of unfinished graphs, as slices that are to come may need any of them."""
        if not graphs:
            return []
        return [
            ClientTaskId(message.first + place)
            for message in self._said
            if isinstance(message, SubmitTasks) and message.graph in graphs
            for place in range(len(message.keys))
        ]

    def _shuffled_keys(self) -> dict[Key, bool]:
        """Barriers that were defined, and whether they have come; few programs have any."""
        barriers: dict[Key, bool] = {}
        for message in self._said:
            if isinstance(message, DefineShuffles):
                barriers.update({shuffle.barrier: False for shuffle in message.shuffles})
            elif barriers and isinstance(message, SubmitTasks):
                barriers.update({key: True for key in message.keys if key in barriers})
        return barriers

    # --- to another scheduler ----------------------------------------------------------------

    def again(
        self,
        wanted: Numbers,
        functions: Collection[CodeId],
        *,
        placed: Callable[[ClientTaskId], bool],
        is_known: Callable[[ClientTaskId], bool] | None = None,
    ) -> list[Message]:
        """What is to be said so that a scheduler knows what is `wanted`, in its first order.

        What is needed only by others is held until they have been said.  A scheduler that lost all
        has neither code nor task; one that knows some already is told the rest.

        Args:
            functions: what it shall keep ready for later submissions; those that it needs are said.
            placed: of a promised or scattered value, or an actor, whether it is on a worker; if so,
                it is wanted by its key, and not made anew.
            is_known: of a number, whether it has its task; None: it has nothing, no code either.
        """
        unfinished = self._unfinished_graphs()
        stays = self._still_held(unfinished)
        if is_known is None:
            roots = [*wanted, *self._tasks_of(unfinished)]
            pieces = self._needed(roots, _never, is_exact=True)
        else:
            knows = is_known
            pieces = self._needed(wanted, lambda n: n in stays or knows(n), is_exact=True)
        pieces = list(_without_actors(pieces, placed))
        held = _needed_later(pieces, wanted)
        defined = {} if is_known is None else dict.fromkeys(functions)
        messages: list[Message] = []
        given, let_go, released = dict(defined), [], []
        for message in pieces:
            if isinstance(message, SubmitTasks):
                for code in dict.fromkeys(message.codes):
                    if code not in given:
                        given[code] = None
                        messages.append(DefineClientCode(code, self._codes[code]))
                numbers = range(message.first, message.first + len(message.keys))
                holds = [i for i, number in enumerate(numbers) if number in held or number in stays]
                let_go += [numbers[i] for i in holds if numbers[i] not in stays]
                is_unfinished = message.graph in unfinished
                messages.append(_as_wanted(message, numbers, wanted, holds, is_unfinished))
            elif isinstance(message, DefineShuffles):
                messages.append(message)
            elif isinstance(message, WantKey) or placed(message.task):
                messages.append(WantKey(message.task, message.key))
                if message.task not in wanted:
                    released.append(message.task)
            elif isinstance(message, PromiseValue):
                messages.append(message)
        detached = [number for number in self._detached if number in wanted]
        if detached:
            messages.append(DetachTasks(detached))
        if let_go:
            numbers_let_go = [ClientTaskId(number) for number in let_go]
            messages.append(letting_go(numbers_let_go, ClientTaskId(1)))
        if released:
            messages.append(ReleaseTasks(released))
        forgotten = [code for code in given if code not in functions]
        if forgotten:
            messages.append(ForgetClientCode(forgotten))
        return messages

    def _still_held(self, unfinished: Collection[ClientTaskId | None]) -> dict[ClientTaskId, None]:
        """What slices that were not said yet may refer to."""
        held: dict[ClientTaskId, None] = {}
        for message in self._said:
            if isinstance(message, SubmitTasks) and message.graph in unfinished:
                held.update({ClientTaskId(message.first + i): None for i in message.held})
                for number in message.let_go:
                    held.pop(number, None)
        return held


def _without_ended_graphs(
    messages: list[Kept], unfinished: Collection[ClientTaskId | None]
) -> Iterator[Kept]:
    """The messages with no word of graphs that were all said: what told the end may be gone."""
    for message in messages:
        if not isinstance(message, SubmitTasks) or message.graph in unfinished:
            yield message
        elif message.keys:
            if message.graph is None:
                yield message
            else:
                yield msgspec.structs.replace(
                    message, graph=None, ntasks_ahead=0, held=[], let_go=[]
                )


def _never(number: ClientTaskId) -> bool:
    return False


def _ntasks_of(message: Kept) -> int:
    return len(message.keys) if isinstance(message, SubmitTasks) else 1


def _nbytes_of(message: Kept) -> int:
    if not isinstance(message, SubmitTasks):
        return 0
    return sum([len(argument) for argument in message.arguments if type(argument) is bytes])


def _needed_places(
    message: SubmitTasks,
    needed: dict[ClientTaskId, None],
    is_known: Callable[[ClientTaskId], bool],
) -> list[int]:
    """Places of the tasks that are needed; what these depend on is added to `needed`."""
    first, dependencies = message.first, message.dependencies
    places = []
    for place in range(len(message.keys) - 1, -1, -1):
        number = ClientTaskId(first + place)
        if number in needed and not is_known(number):
            places.append(place)
            if dependencies:
                for need in dependencies[place]:
                    needed[need] = None
    places.reverse()
    return places


def _pieces(message: SubmitTasks, places: list[int]) -> list[Kept]:
    """The message without its other tasks: one for each run of numbers that follow each other."""
    pieces: list[Kept] = []
    start = 0
    for end in range(1, len(places) + 1):
        if end == len(places) or places[end] != places[end - 1] + 1:
            pieces.append(_piece(message, places[start], places[end - 1] + 1))
            start = end
    return pieces


def _piece(message: SubmitTasks, start: int, end: int) -> SubmitTasks:
    return SubmitTasks(
        first=ClientTaskId(message.first + start),
        keys=message.keys[start:end],
        codes=message.codes if len(message.codes) == 1 else message.codes[start:end],
        arguments=message.arguments[start:end],
        dependencies=message.dependencies[start:end],
        prefixes=message.prefixes,
        prefix_indices=message.prefix_indices[start:end],
        options=message.options,
        other_options=message.other_options,
        option_indices=message.option_indices[start:end],
    )


def _without_actors(pieces: list[Kept], placed: Callable[[ClientTaskId], bool]) -> Iterator[Kept]:
    """The pieces with a want of its key for each actor that was made: what it knows no second run
    would know."""
    for message in pieces:
        if not isinstance(message, SubmitTasks):
            yield message
            continue
        choices = [message.options, *message.other_options]
        are_actors = [choice is not None and choice.actor for choice in choices]
        if not any(are_actors):
            yield message
            continue
        start = 0
        for place, key in enumerate(message.keys):
            choice = message.option_indices[place] if message.option_indices else 0
            number = ClientTaskId(message.first + place)
            if are_actors[choice] and placed(number):
                if start < place:
                    yield _piece(message, start, place)
                yield WantKey(number, key)
                start = place + 1
        if start < len(message.keys):
            yield _piece(message, start, len(message.keys))


def _needed_later(pieces: list[Kept], wanted: Numbers) -> dict[ClientTaskId, None]:
    """What a later message refers to, and nobody wants."""
    held: dict[ClientTaskId, None] = {}
    for message in pieces:
        if isinstance(message, SubmitTasks):
            for needs in message.dependencies:
                for number in needs:
                    if number < message.first and number not in wanted:
                        held[number] = None
    return held


def _as_wanted(
    message: SubmitTasks, numbers: range, wanted: Numbers, holds: list[int], is_unfinished: bool
) -> SubmitTasks:
    """The message with what is wanted and held now; a graph that was all said is none any more."""
    places = [i for i, number in enumerate(numbers) if number in wanted]
    return msgspec.structs.replace(
        message,
        wanted=places,
        held=holds,
        let_go=[],
        graph=message.graph if is_unfinished else None,
        ntasks_ahead=message.ntasks_ahead if is_unfinished else 0,
    )


def letting_go(
    numbers: list[ClientTaskId], first: ClientTaskId, graph: ClientTaskId | None = None
) -> SubmitTasks:
    """A slice without tasks, which lets go of held ones.

    Args:
        first: the number that its first task would have.
        graph: that it ends; None: it is of none.
    """
    return SubmitTasks(
        first=first,
        keys=[],
        codes=[],
        arguments=[],
        dependencies=[],
        prefixes=[""],
        prefix_indices=[],
        wanted=[],
        let_go=numbers,
        graph=graph,
    )
