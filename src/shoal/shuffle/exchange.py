"""What tables and arrays have in common when each input partition is cut for all output partitions.

An *exchange* says how: it is part of each task that takes part in a shuffle, by way of
`WithExchanges`, and known to what that task calls by a context variable.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from shoal.protocol.bundled import SHARED_BYTES_MAX, load_shared
from shoal.protocol.payload import dump_function
from shoal.shuffle.errors import NotInShuffle

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Bytes of a shard, or a part of them."""


class Shard(NamedTuple):
    """What one input partition has for one output partition."""

    output: int
    nrows: int
    """Rows of a table, or elements of an array."""
    buffers: Sequence[Buffer]
    """One after the other they are the shard's bytes, which only `Exchange.join` understands."""


class Cut(NamedTuple):
    """An input partition that was cut by output partition."""

    nrows: int
    """Of the input partition."""
    digest: int
    """Unsigned, 64 bits: the same exactly if each row went to the same output partition."""
    shards: Iterable[Shard]
    """By ascending output partition, those that aren't empty. May be made as they are read, which
    keeps memory bounded; can be read once."""


class Exchange(ABC):
    """How values are cut and joined again: the specification of one shuffle. Can be pickled."""

    kind: ClassVar[str] = "table"
    """Or "array": what it is that is cut."""

    id: str
    disk: bool
    """Whether shards may be written to disk."""

    @property
    @abstractmethod
    def noutputs(self) -> int:
        """How many output partitions there are."""

    @abstractmethod
    def cut(self, value: Any, input_partition: int) -> Cut:
        """Divide one input partition by output partition."""

    @abstractmethod
    def join(self, output: int, shards: Sequence[Buffer]) -> Any:
        """Make output partition `output` of its shards.

        They are in the order of input partitions, empty ones left out. They may be views of a
        mapped file that is closed afterwards: the result owns its memory.
        """

    def nrows_of(self, value: Any) -> int:
        """How many rows `join` has made, or elements of an array: as many as its shards have."""
        return len(value)

    def output_bytes(self, nbytes: int) -> int:
        """What `join` takes at its peak for shards of so many bytes, those not counted."""
        return nbytes


class WithExchanges:
    """A task's function, called where its exchanges are known to it by their ids."""

    __slots__ = ("_payload", "exchanges", "function")

    def __init__(self, exchanges: Mapping[str, Exchange], function: Callable[..., Any]) -> None:
        self.exchanges = dict(exchanges)
        self.function = function
        self._payload: bytes | None = None  # the exchanges pickled, once for all bundles

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, where `exchange_of` knows these and those that were known before."""
        token = _known.set({**_known.get(), **self.exchanges})
        try:
            return self.function(*args, **kwargs)
        finally:
            _known.reset(token)

    def __reduce__(self) -> tuple[Any, ...]:
        payload = self._payload
        if payload is None:
            payload = self._payload = dump_function(self.exchanges)
        return _read, (payload, self.function)

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __repr__(self) -> str:
        return f"WithExchanges({', '.join(self.exchanges)}: {self.function!r})"


def _read(payload: bytes, function: Callable[..., Any]) -> WithExchanges:
    """Tasks of a process that were sent with the same exchanges share them, and what they make."""
    shared = load_shared if len(payload) <= SHARED_BYTES_MAX else pickle.loads
    exchanges: Any = shared(payload)
    return WithExchanges(exchanges, function)


def exchange_of(id: str) -> Exchange:
    """The exchange of this id that the running task was sent with.

    Raises:
        NotInShuffle: it was sent with none.
    """
    exchange = _known.get().get(id)
    if exchange is None:
        raise NotInShuffle(id)
    return exchange


_NONE: Final[dict[str, Exchange]] = {}
_known: ContextVar[dict[str, Exchange]] = ContextVar("shoal exchanges", default=_NONE)
"""Id → exchange, for what runs in this context."""
