"""The order of a graph's tasks: few results alive at once, found in linear time.

It is depth first, the deepest input first, with two looks to the side.  A task that is the last to
need a result goes as soon as all its inputs are there, wherever in the graph it is: so what two
distant parts share, such as a block and its mirror image in `x + x.T`, is let go of at once.  And
where one of several tasks that need the very same inputs was made (a stage of a shuffle), the
others follow, since only all of them together let go of the inputs.

Nothing recurses, so a chain of 100,000 tasks is no different from a wide graph.
"""

from __future__ import annotations

from collections.abc import Sequence


def order_tasks(
    dependencies: Sequence[Sequence[int]],
    roots: Sequence[int],
    needed: Sequence[int],
    heights: Sequence[int],
) -> list[int]:
    """`needed` in the order in which the tasks should start.

    Args:
        dependencies: of each task of the graph, by place; those outside of `needed` count as made.
        roots: what is wanted, the first first.
        needed: places of all that the roots need; without a cycle.
        heights: of each task the longest way down; of several inputs the highest comes first.

    Cost: 1 to 2 us per task for few edges.
    """
    return _Walk(dependencies, needed, heights).run(roots)


class _Walk:
    """What is known about each task while the order is made."""

    __slots__ = (
        "dependencies",
        "dependents",
        "heights",
        "is_followed",
        "is_ordered",
        "is_seen",
        "nmissing",
        "nusers",
        "signatures",
        "stack",
        "users",
    )

    def __init__(
        self, dependencies: Sequence[Sequence[int]], needed: Sequence[int], heights: Sequence[int]
    ) -> None:
        n = len(dependencies)
        self.dependencies = dependencies
        self.heights = heights
        self.is_seen = bytearray(b"\1") * n  # ordered, or on the stack with its inputs above it
        self.is_ordered = bytearray(b"\1") * n
        self.is_followed = bytearray(n)  # pushed by `_push_companions`
        self.dependents: list[list[int]] = [[]] * n
        self.nmissing = [0] * n  # inputs that are not ordered
        self.nusers = [0] * n  # dependents that are not ordered,
        self.users = [0] * n  # and the sum of their places: of a single one, its place
        self.signatures: dict[int, int] = {}  # see `_signature`
        self.stack: list[int] = []
        for i in needed:
            self.is_seen[i] = self.is_ordered[i] = 0
            self.dependents[i] = []
        for i in needed:
            for j in dependencies[i]:
                if not self.is_seen[j]:
                    self.nmissing[i] += 1
                    self.nusers[j] += 1
                    self.users[j] += i
                    self.dependents[j].append(i)

    def run(self, roots: Sequence[int]) -> list[int]:
        order: list[int] = []
        dependencies, heights, nmissing = self.dependencies, self.heights, self.nmissing
        is_seen, is_ordered = self.is_seen, self.is_ordered
        dependents, nusers, users = self.dependents, self.nusers, self.users
        stack = self.stack
        stack += reversed(roots)
        while stack:
            i = stack.pop()
            if i < 0:
                i = ~i
                if is_ordered[i]:
                    continue
            elif is_seen[i]:
                continue
            elif nmissing[i]:
                is_seen[i] = 1
                stack.append(~i)
                missing = [j for j in dependencies[i] if not is_seen[j]]
                if len(missing) > 1:
                    missing.sort(key=heights.__getitem__, reverse=True)
                    missing.reverse()
                stack += missing
                continue
            ready = [i]
            while ready:
                i = ready.pop()
                if is_ordered[i]:
                    continue
                is_ordered[i] = is_seen[i] = 1
                order.append(i)
                for k in dependents[i]:
                    nmissing[k] -= 1
                needs = dependencies[i]
                for j in needs:
                    nusers[j] -= 1
                    users[j] -= i
                    if nusers[j] == 1 and not nmissing[users[j]]:
                        ready.append(users[j])
                if nusers[i] == 1 and not nmissing[users[i]]:
                    ready.append(users[i])
                if len(needs) > 1:
                    self._push_companions(i)
        return order

    def _push_companions(self, i: int) -> None:
        """Have the tasks follow that need what `i`, just made, needs: all of it, and no more.

        Each may need it through tasks of its own, such as the pieces of a split.
        """
        dependencies, dependents = self.dependencies, self.dependents
        needs = dependencies[i]
        origin = self._origin(needs[0])
        nusers = self.nusers[origin]
        if not 0 < nusers < len(needs):
            return  # nothing is left to make, or making it takes more than it lets go of
        companions = []
        for first in dependents[origin]:
            if self.is_ordered[first]:
                continue
            k = first
            while len(dependencies[k]) == 1 and len(dependents[k]) == 1:
                k = dependents[k][0]
            if self.is_seen[k] or self.is_followed[k] or len(dependencies[k]) != len(needs):
                return
            if self._signature(k) != self._signature(i):
                return
            companions.append(k)
        for k in companions:
            self.is_followed[k] = 1
        self.stack += reversed(companions)

    def _signature(self, k: int) -> int:
        """Where all that `k` needs begins, as one number: found once, compared many times.

        Should two different sets have the same one, that costs some results alive at once.
        """
        signature = self.signatures.get(k)
        if signature is None:
            origins = frozenset([self._origin(j) for j in self.dependencies[k]])
            signature = self.signatures[k] = hash(origins)
        return signature

    def _origin(self, j: int) -> int:
        """Where the chain begins that ends in `j`: the first task that others need as well."""
        dependencies, dependents = self.dependencies, self.dependents
        while len(dependencies[j]) == 1 and len(dependents[j]) == 1:
            j = dependencies[j][0]
        return j
