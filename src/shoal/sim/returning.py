"""Runs in which the scheduler is lost and another takes its place: what its peers bring along.

Workers bring results by key, so a key must be of one value in such a run: each version of a task
has a key of its own.  Clients bring what they still want, as their users would submit it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from shoal.ids import Key
from shoal.sim.plan import Act, Cancel, Release, Scatter, Submit, Want
from shoal.sim.slicing import in_order
from shoal.sim.specs import TaskSpec, compute


@dataclass(slots=True)
class Heritage:
    """What a client's user asks for again, once the scheduler is lost."""

    specs: dict[Key, TaskSpec] = field(default_factory=dict)  # all that was ever submitted
    wanted: list[Key] = field(default_factory=list)

    def tasks(self) -> list[TaskSpec]:
        """What is wanted and was submitted, and all that it needs of that."""
        found: dict[Key, TaskSpec] = {}
        due = [key for key in self.wanted if key in self.specs]
        while due:
            key = due.pop()
            if key in found:
                continue
            spec = found[key] = self.specs[key]
            due += [each for each in spec.inputs if each in self.specs]
        return list(found.values())

    def named(self) -> list[Key]:
        """What is wanted by key alone: it came from elsewhere, or was scattered."""
        return [key for key in self.wanted if key not in self.specs]


class Definite:
    """What each key means, in a run where it means one thing."""

    def __init__(self, acts: Sequence[Act]) -> None:
        self._specs: dict[Key, TaskSpec] = {}
        self._prints: dict[Key, int] = {}
        for act in acts:
            if isinstance(act, Submit):
                self._specs.update((task.key, task) for task in act.tasks)
            elif isinstance(act, Scatter):
                for value in act.values:
                    self._prints[value.key] = compute("scatter", value.label, ())
                    self._specs[value.key] = value

    def spec(self, key: Key) -> TaskSpec:
        """What makes it; of an unknown key, something that never was made."""
        return self._specs.get(key) or TaskSpec(key)

    def fingerprint(self, key: Key) -> int:
        """Of its value; 0 if it is unknown, or anything that it needs is."""
        prints = self._prints
        stack = [key]
        while stack:
            top = stack[-1]
            spec = self._specs.get(top)
            missing = [] if spec is None else [each for each in spec.inputs if each not in prints]
            if top in prints or spec is None:
                prints.setdefault(top, 0)
                stack.pop()
            elif missing:
                stack.append(missing[0])
            else:
                inputs = [prints[each] for each in spec.inputs]
                prints[top] = compute(f"function-{spec.function}", spec.label, inputs)
                stack.pop()
        return prints[key]


class _Names:
    """Keys that are of one value each: one for each version, and for each version of inputs."""

    def __init__(self) -> None:
        self.latest: dict[Key, Key] = {}
        self._known: dict[tuple[Key, int, tuple[Key, ...]], Key] = {}
        self._nkeys: dict[Key, int] = {}

    def of(self, keys: Sequence[Key]) -> tuple[Key, ...]:
        """What these keys mean at this time."""
        return tuple(self.latest.get(key, key) for key in keys)

    def renamed(self, tasks: Sequence[TaskSpec]) -> tuple[TaskSpec, ...]:
        """The same tasks, dependencies before dependents, under keys of their own."""
        renamed = [self._renamed(task) for task in in_order(tasks)]
        return tuple(
            replace(task, shuffle=self.of([Key(task.shuffle)])[0]) if task.shuffle else task
            for task in renamed
        )

    def _renamed(self, task: TaskSpec) -> TaskSpec:
        inputs = self.of(task.inputs)
        identity = task.key, task.version, inputs
        key = self._known.get(identity)
        if key is None:
            nkeys = self._nkeys[task.key] = self._nkeys.get(task.key, 0) + 1
            key = task.key if nkeys == 1 else Key(f"{task.key}~{nkeys}")
            self._known[identity] = key
        self.latest[task.key] = key
        awaits = None if task.awaits is None else self.of([task.awaits])[0]
        return replace(task, key=key, inputs=inputs, awaits=awaits)


def used_once(acts: Sequence[Act]) -> list[Act]:
    """The same acts, where each version of a key is a key of its own."""
    names = _Names()
    changed: list[Act] = []
    for act in sorted(acts, key=lambda act: act.at):
        match act:
            case Submit(tasks=tasks):
                renamed = names.renamed(tasks)
                wanted = None if act.wanted is None else names.of(act.wanted)
                changed.append(replace(act, tasks=renamed, wanted=wanted))
            case Scatter(values=values):
                changed.append(replace(act, values=names.renamed(values)))
            case Release() | Cancel():
                changed.append(replace(act, keys=names.of(act.keys)))
            case Want():
                changed.append(replace(act, key=names.of([act.key])[0]))
            case _:
                changed.append(act)
    return changed
