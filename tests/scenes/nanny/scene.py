"""A nanny's machine on a stage: what becomes of the worker, and what is done about it."""

from shoal.nanny.machine import (
    AskedToClose,
    AskedToStart,
    Effect,
    End,
    Event,
    GiveUp,
    NannyMachine,
    RestartSettings,
    Start,
    WakeAfter,
    Woke,
    WorkerDied,
    WorkerLeft,
    WorkerReady,
)

SETTINGS = RestartSettings(
    pause_seconds=1.0,
    pause_seconds_max=3.0,
    deaths_max=6,
    steady_seconds=10.0,
    memory_deaths_max=4,
    memory_steady_seconds=100.0,
)


class Scene:
    """One nanny and its clock; `take()` gives all that it did since, as short lines."""

    def __init__(self, settings: RestartSettings = SETTINGS) -> None:
        self.machine = NannyMachine(settings)
        self.now = 0.0
        self._done: list[str] = []

    def start(self) -> None:
        self._step(AskedToStart())

    def close(self) -> None:
        self._step(AskedToClose())

    def ready(self) -> None:
        self._step(WorkerReady())

    def die(
        self, cause: str = "SIGKILL", *, has_worked: bool = False, by_memory_limit: bool = False
    ) -> None:
        self._step(WorkerDied(cause, has_worked, by_memory_limit))

    def live_and_die(
        self, seconds: float, *, has_worked: bool = False, by_memory_limit: bool = False
    ) -> None:
        """Of a worker that was asked for: it is there, dies after so long, and is due again."""
        self.ready()
        self.wait(seconds)
        cause = "memory" if by_memory_limit else "SIGKILL"
        self.die(cause, has_worked=has_worked, by_memory_limit=by_memory_limit)
        self.wait(3)
        self.wake()

    def leave(self, reason: str = "retired", again: bool = False, by_request: bool = False) -> None:
        self._step(WorkerLeft(reason, again, by_request))

    def wake(self) -> None:
        self._step(Woke())

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def take(self) -> list[str]:
        done, self._done = self._done, []
        return done

    def _step(self, event: Event) -> None:
        self._done += [_line(effect) for effect in self.machine.step(event, self.now)]


def _line(effect: Effect) -> str:
    match effect:
        case Start():
            return "start"
        case WakeAfter(seconds):
            return f"wake after {seconds:g}"
        case GiveUp(causes, by_memory_limit):
            kind = " for its memory" if by_memory_limit else ""
            return f"give up{kind}: {', '.join(causes)}"
        case End(reason):
            return f"end: {reason}"
