"""Does the simulator find anything?  Guards of the machines, each deleted in turn.

A mutant is a change of a machine's source text, made as the module is imported in a process of its
own.  For each guard there must be a fault that needs it; a mutant that survives means that either
the guard or a fault is missing.  `python -m shoal.sim.mutants` says how many seeds each one takes.
"""

import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

from shoal.sim.mutant import Mutant
from shoal.sim.orphan_mutants import OF_ORPHANS
from shoal.sim.room_mutants import OF_ROOM
from shoal.sim.shuffle_mutants import OF_SHUFFLES
from shoal.sim.silence_mutants import OF_SILENCE

NOTICED: Final = 3
"""Exit code of a process whose mutant was noticed; not one that an exception would give."""


MUTANTS: Final = (
    Mutant(
        "answers of stale runs count",
        "shoal.scheduler.machine.on_worker",
        "task.run != run or task.worker is not worker",
        "task.worker is not worker",
    ),
    Mutant(
        "results of stale runs are left where they are",
        "shoal.scheduler.machine.on_worker",
        "    if task is None:\n        core.free(worker, number)\n    elif task.worker is worker:",
        "    if task is None:\n        return\n    elif task.worker is worker:",
    ),
    Mutant(
        "a placed task whose input is lost is sent all the same",
        "shoal.scheduler.machine.finishing",
        "        elif dependent.state == PROCESSING and dependent.run == NO_RUN:\n",
        "        elif False:\n",
    ),
    Mutant(
        "a new worker does not help those that had none",
        "shoal.scheduler.machine.on_membership",
        "for task in list(state.unrunnable):",
        "for task in list(state.unrunnable)[:0]:",
    ),
    Mutant(
        "released replicas are not freed",
        "shoal.scheduler.machine.releasing",
        "        core.free(worker, task.id)\n",
        "",
    ),
    Mutant(
        "an inventory is believed whatever its epoch",
        "shoal.scheduler.machine.on_membership",
        "    if message.epoch == state.epoch:\n",
        "    if True:\n",
    ),
    Mutant(
        "copies are dropped whatever their goal",
        "shoal.scheduler.policies.reduction",
        "        if worker in for_goal:\n",
        "        if False:\n",
    ),
    Mutant(
        "copies are dropped where they are read",
        "shoal.scheduler.policies.reduction",
        "w not in uses.workers and (nspare",
        "(nspare",
    ),
    Mutant(
        "retries are never used up",
        "shoal.scheduler.machine.on_worker",
        "        task.retries -= 1\n",
        "",
    ),
    Mutant(
        "a paused worker begins what it is sent",
        "shoal.worker.machine.computing",
        "    if state.pause is not None:\n        state.ready = ",
        "    if False:\n        state.ready = ",
    ),
    Mutant(
        "a paused worker leaves with its threads what they have not begun",
        "shoal.worker.machine.memory",
        "    if before is None and not _take_back(state):\n        _except_one(state)\n",
        "",
    ),
    Mutant(
        "no run goes on where what was read fills memory",
        "shoal.worker.machine.memory",
        "            state.excepted = run\n",
        "            pass\n",
    ),
    Mutant(
        "a freed input is pulled from under a run",
        "shoal.worker.machine.forgetting",
        "            if replica.npins:\n",
        "            if False:\n",
    ),
    Mutant(
        "a run begins though its input is on disk",
        "shoal.worker.machine.computing",
        "    if state.absent:\n        await_values(state, run)\n",
        "",
    ),
    Mutant(
        "a value is let go of though a run has begun to use it",
        "shoal.worker.machine.spilling",
        "    if replica.npins and not (_are_held_back(state) and ",
        "    if False and (",
    ),
    Mutant(
        "nobody is told of a lost file",
        "shoal.worker.machine.spilling",
        "        state.outbox.append(ReplicasGone([replica.task]))\n",
        "        pass\n",
    ),
    Mutant(
        "a run whose input is lost waits on",
        "shoal.worker.machine.spilling",
        "    waiters = list(residence.readers or ())\n    state.record(replica.key, words.FILE",
        "    waiters: list[Run] = []\n    state.record(replica.key, words.FILE",
    ),
    Mutant(
        "an input that its holder lacks is not asked of the next",
        "shoal.worker.machine.gathering",
        'lacks it")\n            _next_holder(state, want)\n',
        'lacks it")\n',
    ),
    Mutant(
        "numbers outlive the epoch that they belong to",
        "shoal.worker.machine.step",
        "            orphans.enter_epoch(state, message.epoch)\n",
        "            state.epoch = message.epoch\n",
    ),
    Mutant(
        "a worker that connects anew is a second one",
        "shoal.scheduler.machine.on_membership",
        "    if before is not None:\n",
        "    if False:\n",
    ),
    Mutant(
        "what a client says in one frame is settled at its end only",
        "shoal.scheduler.machine.on_client",
        "    settle_all(core)\n    choices = ",
        "    choices = ",
    ),
    Mutant(
        "a client that has gone keeps its locks",
        "shoal.scheduler.machine.coordination.locks",
        "    client_gone=drop_claims,\n",
        "",
    ),
    Mutant(
        "a claim that is given up ends the one that holds the lock",
        "shoal.scheduler.machine.coordination.locks",
        "    if claim not in lock.held:\n",
        "    if False:\n",
    ),
    Mutant(
        "runs have resources that nobody counts",
        "shoal.scheduler.machine.filling",
        "        claim(core, worker, task.run, task)\n",
        "        pass\n",
    ),
    Mutant(
        "resources that came back are still held",
        "shoal.scheduler.machine.demands",
        "    options = worker.claims.pop(run, None)\n",
        "    options = worker.claims.get(run)\n",
    ),
    Mutant(
        "demands that were passed by are looked at no more",
        "shoal.scheduler.machine.demands",
        "                line.enter(demand)\n",
        "                pass\n",
    ),
    Mutant(
        "a limit is reached by runs of workers that have gone",
        "shoal.scheduler.machine.demands",
        "    worker_gone=discount_lost,\n",
        "",
    ),
    Mutant(
        "a place that gets free on one worker is not had by tasks of another",
        "shoal.scheduler.machine.demands",
        "        core.has_new_demand = True\n\n\ndef discount_lost",
        "        pass\n\n\ndef discount_lost",
    ),
    Mutant(
        "who waits for a name is not looked at as a run of it has ended",
        "shoal.scheduler.model.limits",
        "            self.free(name)\n",
        "",
    ),
    Mutant(
        "who has gone takes turns",
        "shoal.scheduler.machine.sharing",
        "HANDLERS = Handlers(client_gone=drop_flow, ",
        "HANDLERS = Handlers(",
    ),
    Mutant(
        "any worker has memory for any task",
        "shoal.scheduler.machine.admitting",
        "    if core.admission.fits(task, worker, core.now):\n",
        "    if True:\n",
    ),
    Mutant(
        "what runs take of memory is not counted",
        "shoal.scheduler.machine.admitting",
        "        worker.weights[task.run] = Weight(task, core.now)\n",
        "        pass\n",
    ),
    Mutant(
        "a run that has ended keeps its memory",
        "shoal.scheduler.machine.on_memory",
        "    weight = worker.weights.pop(run, None)\n",
        "    weight = worker.weights.get(run)\n",
    ),
    Mutant(
        "those that waited for memory are forgotten once their kind takes little",
        "shoal.scheduler.machine.on_memory",
        "        core.state.queue.absorb(queue)\n    held",
        "        pass\n    held",
    ),
    Mutant(
        "ready tasks that were put off are not placed until something happens",
        "shoal.scheduler.machine.placing",
        "    if unplaced:\n        core.wake_by(core.now)\n",
        "",
    ),
    Mutant(
        "what was put off is placed though an input was lost since",
        "shoal.scheduler.machine.placing",
        "        if task.state != WAITING or task.nwaiting:\n",
        "        if task.state != WAITING:\n",
    ),
    Mutant(
        "what is taken from a backlog may not run where it goes",
        "shoal.scheduler.machine.stealing",
        "        may_run_on(task, thief)\n        and not",
        "        not",
    ),
    Mutant(
        "what has seceded is counted when it has ended",
        "shoal.scheduler.machine.placing",
        "worker.seceded.pop(task, False):\n        worker.nwaiting -= 1\n",
        "worker.seceded.pop(task, False):\n        pass\n",
    ),
    Mutant(
        "what was sent back avoids workers beyond its end",
        "shoal.scheduler.machine.releasing",
        "        state.avoided.pop(task, None)\n",
        "        pass\n",
    ),
    Mutant(
        "who could not get a result is noted beyond its end",
        "shoal.scheduler.machine.releasing",
        "        state.witnesses.pop(task, None)\n",
        "        pass\n",
    ),
    Mutant(
        "a long-running run that is recalled is given back",
        "shoal.worker.machine.computing",
        "        if run.state == LONG_RUNNING or run is state.excepted:\n            continue\n",
        "",
    ),
    Mutant(
        "a worker that goes on working is not told to those who wait for one",
        "shoal.scheduler.machine.retiring",
        "        answer_waiting_calls(core, worker)\n",
        "",
    ),
    Mutant(
        "what was taken from a queue is lost with who had not received it",
        "shoal.scheduler.machine.coordination.queues",
        "        queue.items.extendleft(reversed(queue.taken.pop(claim, [])))\n",
        "        queue.taken.pop(claim, None)\n",
    ),
    Mutant(
        "what was received from a queue is there again",
        "shoal.scheduler.machine.coordination.queues",
        "    if message.is_received:\n",
        "    if False:\n",
    ),
    Mutant(
        "several names are held before all of them are free",
        "shoal.scheduler.machine.coordination.joints",
        "        if joint.holding or len(free) < joint.count:\n",
        "        if joint.holding:\n",
    ),
    Mutant(
        "a cancelled want may be shared by a new future",
        "shoal.client.machine.wants",
        "    def _cancel(self, record: Record, reason: str) -> None:\n"
        "        if self.records.get(record.key) is record:\n",
        "    def _cancel(self, record: Record, reason: str) -> None:\n        if False:\n",
    ),
    Mutant(
        "a release overtakes the submission before it",
        "shoal.client.machine.outgoing",
        "        if self._released:\n            self._close_releases()\n",
        "",
    ),
    Mutant(
        "an actor that has lived is made again for what was made with it",
        "shoal.scheduler.machine.waiting",
        "    if task.nbytes >= 0 and task.options.actor:",
        "    if False:",
    ),
    Mutant(
        "an actor that is lost is made again as if it was a result",
        "shoal.scheduler.machine.finishing",
        "    if task.options.actor:\n        lose_actor(",
        "    if False:\n        lose_actor(",
    ),
    *OF_ROOM,
    *OF_SHUFFLES,
    *OF_ORPHANS,
    *OF_SILENCE,
)


class _MutatingLoader(SourceFileLoader):
    """Reads a module's source, and changes it."""

    mutant: Mutant

    def get_data(self, path: str) -> bytes:
        found = super().get_data(path)
        return mutated(self.mutant, found.decode()).encode() if path == self.path else found

    def path_stats(self, path: str) -> dict[str, object]:
        raise OSError("what is mutated is never cached")

    def set_data(self, path: str, data: object, *, _mode: int = 0o666) -> None:
        """Keep no bytecode of it either."""


class _MutatingFinder(MetaPathFinder):
    """Finds one module, and has it changed as it is loaded."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            loader = _MutatingLoader(fullname, spec.origin)
            loader.mutant = self._mutant
            spec.loader = loader
        return spec


def mutated(mutant: Mutant, source: str) -> str:
    """The source text without the guard.

    Raises:
        LookupError: the guard is not there exactly once, so the mutant has to be written anew.
    """
    found = source.count(mutant.old)
    if found != 1:
        raise LookupError(f"the guard of {mutant.name!r} is in {mutant.module} {found} times")
    return source.replace(mutant.old, mutant.new)


def source_of(mutant: Mutant) -> str:
    """The present source text of the mutant's module, which is not imported for it."""
    root, *names = mutant.module.split(".")
    package = find_spec(root)
    places = [] if package is None else package.submodule_search_locations or []
    for place in places:
        path = Path(place, *names).with_suffix(".py")
        if path.exists():
            return path.read_text(encoding="utf-8")
    raise LookupError(f"there is no module {mutant.module}")


def nseeds_to_find(mutant: Mutant, nseeds: int, *, start: int = 0) -> tuple[int, str] | None:
    """How many seeds it takes to notice, and what is then said; None if `nseeds` don't.

    Runs in a process of its own, since the machines are imported anew.
    """
    command = [sys.executable, "-m", "shoal.sim.mutants", "--one", mutant.name]
    command += ["--seeds", str(nseeds), "--start", str(start)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode not in (0, NOTICED):
        raise RuntimeError(f"the mutant {mutant.name!r} can't be run:\n{answer.stderr}")
    if answer.returncode == 0:
        return None
    number, _, sentence = answer.stdout.strip().partition(" ")
    return int(number), sentence


def _run_one(name: str, start: int, nseeds: int) -> int:
    """In the child: the exit code is NOTICED if the mutant was."""
    [mutant] = [mutant for mutant in MUTANTS if mutant.name == name]
    mutated(mutant, source_of(mutant))
    assert mutant.module not in sys.modules, "it is too late to change a module that is there"
    sys.meta_path.insert(0, _MutatingFinder(mutant))
    from shoal.sim.run import run
    from shoal.sim.swarm import expand

    for i, seed in enumerate(range(start, start + nseeds)):
        verdict = run(expand(seed), checks_all=seed % 10 == 0)
        if not verdict.is_good:
            print(i + 1, f"{verdict.invariant}: {verdict.sentence}")
            return NOTICED
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Try every mutant; the exit code is 1 if one survives."""
    parser = ArgumentParser(prog="python -m shoal.sim.mutants", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5000, help="how many each one may take")
    parser.add_argument("--start", type=int, default=0, help="the first")
    parser.add_argument("--one", help="run this one here, and stop when it is noticed")
    options = parser.parse_args(arguments)
    if options.one is not None:
        return _run_one(options.one, options.start, options.seeds)
    survivors = 0
    for mutant in MUTANTS:
        found = nseeds_to_find(mutant, options.seeds, start=options.start)
        if found is None:
            survivors += 1
            print(f"{options.seeds:6} seeds: {mutant.name}: SURVIVED", flush=True)
        else:
            print(f"{found[0]:6} seeds: {mutant.name}: {found[1][:120]}", flush=True)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
