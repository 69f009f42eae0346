"""Rivals that are no more than a rule, and what all of them have in common."""

from __future__ import annotations

from random import Random

from benchmarks.policies.cluster import ARRIVED, FINISHED, Cluster, Event, Run


class Rule:
    """Knows who holds what and which tasks are ready; where they go is for others to say."""

    def __init__(self, cluster: Cluster, seed: int = 0) -> None:
        self.cluster = cluster
        cluster.ask_again = self.holders_of
        self.graph = cluster.graph
        self.random = Random(seed)
        self.who_has: list[list[int]] = [[] for _ in range(len(self.graph))]
        self._nmissing = [len(needs) for needs in self.graph.inputs]
        self._nusers = [len(users) for users in self.graph.dependents]
        self._orders: dict[int, list[Event]] = {}

    def start(self) -> None:
        """Place all that needs nothing."""
        self.place([task for task, nmissing in enumerate(self._nmissing) if not nmissing])
        self.flush()

    def receive(self, worker: int, events: list[Event]) -> None:
        """Note what has come to be, and place what that makes ready."""
        ready: list[int] = []
        for event in events:
            kind = event[0]
            if kind is FINISHED:
                self.on_finished(worker, event[1])
                ready += self._finish(worker, event[1])
            elif kind is ARRIVED:
                self.on_arrived(worker, event[1], event[2])
                if self._nusers[event[1]]:
                    self.who_has[event[1]].append(worker)
                else:
                    self.cluster.free_now(worker, event[1])
            else:
                self.on_other(worker, event)
        ready.sort()
        self.place(ready)
        self.flush()

    def wake(self) -> None:
        """Nobody asked for it."""

    def place(self, ready: list[int]) -> None:
        """These tasks may run: send them somewhere, or keep them, as is done here."""

    def on_finished(self, worker: int, run: Run) -> None:
        """A run has ended."""

    def on_arrived(self, worker: int, task: int, seconds: float) -> None:
        """A copy of an input has arrived."""

    def on_other(self, worker: int, event: Event) -> None:
        """Something else was said."""

    def send(self, worker: int, task: int, number: int = 0) -> None:
        """Have `worker` run `task`, with its inputs from whoever has them, at random."""
        inputs = [(i, self.holders_of(i)) for i in self.graph.inputs[task]]
        run = Run(task, number, task, inputs)
        self._orders.setdefault(worker, []).append(("run", run))

    def holders_of(self, task: int) -> list[int]:
        """Some workers that hold it, the first of them by chance."""
        has = self.who_has[task]
        return [has[self.random.randrange(len(has))], *has[:8]] if has else []

    def say(self, worker: int, order: Event) -> None:
        """Add an order to what `worker` is told at the end of the step."""
        self._orders.setdefault(worker, []).append(order)

    def flush(self) -> None:
        """Say all that is to be said."""
        for worker, orders in self._orders.items():
            self.cluster.tell(worker, orders)
        self._orders.clear()

    def _finish(self, worker: int, run: Run) -> list[int]:
        ready: list[int] = []
        task = run.task
        self.who_has[task].append(worker)
        for user in self.graph.dependents[task]:
            self._nmissing[user] -= 1
            if not self._nmissing[user]:
                ready.append(user)
        for i in self.graph.inputs[task]:
            self._nusers[i] -= 1
            if not self._nusers[i]:
                for holder in self.who_has[i]:
                    self.cluster.free_now(holder, i)
                self.who_has[i] = []
        return ready


class Randomly(Rule):
    """Any worker, as soon as the inputs exist."""

    def place(self, ready: list[int]) -> None:
        """Throw dice."""
        for task in ready:
            self.send(self.random.randrange(self.cluster.shape.nworkers), task)
