"""A set whose iteration order is the order of insertion, and so the same in every run.

Pure rooms iterate over these and never over a `set`: a set's order depends on hashes and on
memory addresses, and one such loop makes two runs of one seed differ.
"""

from collections.abc import Iterable
from typing import Self, TypeVar

T = TypeVar("T")


class OrderedSet(dict[T, None]):
    """Distinct items in insertion order.

    It *is* a dict with the items as keys, so `in`, `len`, `bool` and iteration run at the speed of
    one.  Equality ignores order, as between sets.  Every method here is O(1) unless it says so.
    """

    __slots__ = ()

    def __init__(self, items: Iterable[T] = ()) -> None:
        """Cost: O(items); a second sight of an item leaves it where it was first seen."""
        super().__init__(dict.fromkeys(items))

    def add(self, item: T) -> None:
        """Append `item`, unless it is there already."""
        self[item] = None

    def add_all(self, items: Iterable[T]) -> None:
        """Append each of `items` that is not there yet.  Cost: O(items)."""
        for item in items:
            self[item] = None

    def discard(self, item: T) -> None:
        """Remove `item` if it is there."""
        self.pop(item, None)

    def discard_all(self, items: Iterable[T]) -> None:
        """Remove each of `items` that is there.  Cost: O(items)."""
        for item in items:
            self.pop(item, None)

    def remove(self, item: T) -> None:
        """Remove `item`.

        Raises:
            KeyError: it is not there.
        """
        del self[item]

    def first(self) -> T:
        """The oldest item.

        Raises:
            KeyError: there is none.

        Cost: O(items removed from the front since the last insertion).
        """
        for item in self:
            return item
        raise KeyError("first of an empty OrderedSet")

    def pop_first(self) -> T:
        """Remove and return the oldest item; raises KeyError if there is none.  Cost as `first`."""
        item = self.first()
        del self[item]
        return item

    def pop_last(self) -> T:
        """Remove and return the newest item; raises KeyError if there is none."""
        return self.popitem()[0]

    def copy(self) -> Self:
        """A set of its own with the same items in the same order.  Cost: O(items)."""
        return type(self)(self)

    def __repr__(self) -> str:
        return f"OrderedSet({list(self)!r})"

    def __reduce__(self) -> tuple[type[Self], tuple[list[T]]]:
        return type(self), (list(self),)
