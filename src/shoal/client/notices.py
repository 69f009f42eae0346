"""What a client logs of what its scheduler tells: what happened, why, and what to do."""

from collections.abc import Mapping, Sequence

from shoal.errors import ShoalError


class NobodyMayRun(ShoalError):
    """Tasks are ready, and wait for a worker that may never come.  Logged, never raised."""

    def __init__(
        self,
        key: str,
        ntasks: int,
        seconds: float,
        workers: Sequence[str],
        resources: Mapping[str, float],
        nworkers: int,
        offered: Mapping[str, float],
        names: Sequence[str],
        npaused: int = 0,
    ) -> None:
        """As `TasksStranded` has it."""
        had = nworkers, dict(offered), list(names), npaused
        super().__init__(key, ntasks, seconds, list(workers), dict(resources), *had)
        self.key, self.ntasks, self.seconds = key, ntasks, seconds
        self.workers, self.resources = list(workers), dict(resources)
        self.nworkers, self.offered, self.names, self.npaused = had

    def __str__(self) -> str:
        if self.ntasks == 1:
            what = f"The task {self.key} has been ready for {self.seconds:g} s"
        else:
            what = (
                f"{self.ntasks} tasks, {self.key} among them, have been ready for "
                f"{self.seconds:g} s"
            )
        many = self.nworkers - len(self.names)
        others = f" and {many} more" if many else ""
        named = f"{', '.join(self.names)}{others}"  # names are numbers, too, so how many is said
        there = f"{self.nworkers} (named {named})" if self.nworkers else "none"
        goes_on = ""
        if self.npaused:
            there += f", {self.npaused} of them paused, as their memory is short"
            goes_on = "a paused one that may run it has room (`client.explain` has numbers), or as "
        return (
            f"{what}, and no connected worker may run {'it' if self.ntasks == 1 else 'them'}: "
            f"{'; '.join(self._wishes())}. Connected workers: {there}.\n"
            f"What waits will run as soon as {goes_on}a worker comes that may run it, or one "
            "offers as much: `dask worker --resources ...`. If none will, cancel the tasks and ask "
            "for less; the setting distributed.scheduler.no-workers-timeout makes such tasks fail "
            "by themselves."
        )

    def _wishes(self) -> list[str]:
        wishes = []
        if self.resources:
            amounts = ", ".join(f"{name}={amount:g}" for name, amount in self.resources.items())
            had = [
                f"the most that one has of {name} is {amount:g}" if amount else f"none has {name}"
                for name, amount in self.offered.items()
            ]
            if all(self.offered.get(name, 0.0) >= need for name, need in self.resources.items()):
                had = ["no worker has all of that"]
            wishes.append(f"{amounts} is needed, and {', '.join(had)}")
        if self.workers:
            wishes.append(f"only {', '.join(map(repr, self.workers))} may run such tasks")
        return wishes or ["there is none"]


class NobodyBegins(ShoalError):
    """Tasks wait, and all workers are paused.  Logged, never raised."""

    def __init__(self, nworkers: int, seconds: float, worker: str, why: str) -> None:
        """As `AllPaused` has it."""
        super().__init__(nworkers, seconds, worker, why)
        self.nworkers, self.seconds, self.worker, self.why = nworkers, seconds, worker, why

    def __str__(self) -> str:
        one, n = self.nworkers == 1, self.nworkers
        who = "The only worker has" if one else f"All {n} workers have"
        which = "" if one else f". The one with the least room is {self.worker}"
        return (
            f"{who} been paused for {self.seconds:.0f} s, and tasks wait"
            f"{which}: {self.why.removesuffix('.')}.\n"
            "Tasks go on as soon as one has room. If it stays like that: release futures that are "
            "no longer needed, start more workers (cluster.scale), give them more memory "
            "(memory_limit=), or cancel what waits."
        )


class JournalGone(ShoalError):
    """What was to outlive the scheduler will not.  Logged, never raised."""

    def __init__(self, why: str) -> None:
        """`why`: as a clause."""
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return (
            f"The scheduler's journal has stopped: {self.why}.\n"
            "It goes on without one: what is published and what was fired and forgotten is there "
            "as before, and goes with the scheduler. Have whoever runs the scheduler mend the "
            "disk and start it again; the scheduler's log says which folder it is."
        )


class HeldByOuterTasks(ShoalError):
    """Tasks may wait for each other.  Logged, never raised."""

    def __init__(
        self, key: str, holder: str, nholders: int, names: Sequence[str], seconds: float
    ) -> None:
        """As `PlacesHeld` has it."""
        super().__init__(key, holder, nholders, list(names), seconds)
        self.key, self.holder, self.nholders = key, holder, nholders
        self.names, self.seconds = list(names), seconds

    def __str__(self) -> str:
        names = ", ".join(map(repr, self.names))
        whose = "that task itself"
        if self.nholders > 1:
            whose = f"that one and {self.nholders - 1} more that have submitted such tasks"
        return (
            f"The task {self.key}, which {self.holder} has submitted, has been ready for "
            f"{self.seconds:.1f} s: it needs {names}, and all there is of it is with {whose}. "
            "A run keeps its limit's places and its resources until it ends, so if it waits for "
            f"what it has submitted, it waits for ever.\nSubmit the inner tasks without {names}, "
            "or leave that to them alone; or raise the limit (`client.set_limits`), or offer more "
            "of the resource."
        )
