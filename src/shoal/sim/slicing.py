"""A graph of the simulation on its way to the scheduler, a slice at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shoal.client.machine import Record
from shoal.ids import ClientTaskId, CodeId, Key
from shoal.protocol.messages import SubmitTasks, TaskOptions
from shoal.sim.specs import TaskSpec, bundle_payload


@dataclass(slots=True)
class Graph:
    """A graph that is being said in slices."""

    first: ClientTaskId
    numbers: dict[Key, ClientTaskId]
    wanted: frozenset[Key]
    outside: list[Record]  # futures it depends on
    options: TaskOptions | None
    bundle_size: int
    held: dict[Key, None] = field(default_factory=dict)  # what later slices refer to

    def cut(
        self, new_code: Callable[[], CodeId], tasks: list[TaskSpec], later: list[TaskSpec]
    ) -> tuple[list[tuple[CodeId, bytes]], SubmitTasks]:
        """The next slice: its bundles and its message; `later` is what is still to be said."""
        bundles: list[tuple[CodeId, bytes]] = []
        codes: list[CodeId] = []
        arguments: list[bytes | int] = []
        size = self.bundle_size
        for i in range(0, len(tasks), size):
            members = tasks[i : i + size]
            code = new_code()
            bundles.append((code, bundle_payload(members)))
            codes += [code] * len(members)
            arguments += range(len(members))
        numbers = self.numbers
        needed = {key for task in later for key in task.inputs}
        held = [i for i, task in enumerate(tasks) if task.key in needed]
        self.held.update((task.key, None) for task in tasks if task.key in needed)
        let_go = [key for key in self.held if key not in needed]
        for key in let_go:
            del self.held[key]
        message = SubmitTasks(
            first=numbers[tasks[0].key],
            keys=[task.key for task in tasks],
            codes=codes,
            arguments=arguments,
            dependencies=[
                [numbers[key] for key in task.inputs if key in numbers] for task in tasks
            ],
            prefixes=[prefix_of(task.key) for task in tasks],
            prefix_indices=list(range(len(tasks))),
            options=self.options,
            wanted=[i for i, task in enumerate(tasks) if task.key in self.wanted],
            held=held,
            let_go=[numbers[key] for key in let_go],
            graph=self.first,
            ntasks_ahead=len(later),
        )
        return bundles, message


def in_order(tasks: Sequence[TaskSpec]) -> list[TaskSpec]:
    """Dependencies before dependents, otherwise as given; of two for one key, the last counts."""
    by_key = {task.key: task for task in tasks}
    done: dict[Key, TaskSpec] = {}
    for task in by_key.values():
        stack = [task]
        while stack:
            top = stack[-1]
            missing = [by_key[key] for key in top.inputs if key in by_key and key not in done]
            if missing:
                stack.append(missing[0])
            else:
                done[top.key] = stack.pop()
    return list(done.values())


def prefix_of(key: Key) -> str:
    """What the keys of one function begin with."""
    return key.partition("-")[0]
