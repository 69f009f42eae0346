"""Shapes of graphs, and what clients do with them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from random import Random
from typing import Final

from msgspec import structs

from shoal.ids import Key
from shoal.protocol.messages import TaskOptions
from shoal.sim.faults import worker_index
from shoal.sim.plan import (
    Act,
    Ask,
    Cancel,
    HoldLock,
    Leave,
    Rebalance,
    Release,
    Replicate,
    Restart,
    RetireSome,
    Retry,
    Scatter,
    Submit,
    Trade,
    Want,
)
from shoal.sim.shuffling import BARRIER, TRANSFER, UNPACK
from shoal.sim.specs import ALWAYS, NBYTES_MIN, TaskSpec


@dataclass(slots=True)
class Tuning:
    """What tasks are like in one run."""

    seconds: float = 0.01  # mean
    large_ratio: float = 0.3  # of results too large to travel inside a message
    failing_ratio: float = 0.0  # of tasks that raise now and then
    unsendable_ratio: float = 0.0  # of large results that can't be serialised
    is_even: bool = False  # every task takes the mean


@dataclass(slots=True)
class Maker:
    """Makes tasks; remembers how many versions of each key there are."""

    dice: Random
    tuning: Tuning
    versions: dict[Key, int] = field(default_factory=dict)

    def task(self, key: Key, inputs: Sequence[Key] = ()) -> TaskSpec:
        """A new version of `key`."""
        version = self.versions.get(key, -1) + 1
        self.versions[key] = version
        dice, tuning = self.dice, self.tuning
        if dice.random() < tuning.large_ratio:
            nbytes = dice.choice((1025, 5_000, 200_000, 200_000, 30_000_000))
        else:
            nbytes = dice.randrange(NBYTES_MIN, 1025)
        nfailures = 0
        if dice.random() < tuning.failing_ratio:
            nfailures = dice.choice((1, 1, 2, 3, ALWAYS))
        seconds = tuning.seconds
        if not tuning.is_even:
            seconds *= dice.expovariate(1.0)
        return TaskSpec(key, version, tuple(inputs), seconds, nbytes, nfailures, dice.randrange(3))


Shape = Callable[[Maker, str, int], list[TaskSpec]]


def random_graph(make: Maker, name: str, ntasks: int) -> list[TaskSpec]:
    """Up to three inputs each, from anywhere before, mostly from nearby."""
    tasks: list[TaskSpec] = []
    for i in range(ntasks):
        ninputs = min(i, make.dice.choice((0, 1, 1, 2, 2, 3)))
        near = range(max(0, i - 6), i)
        source = near if make.dice.random() < 0.7 and len(near) >= ninputs else range(i)
        chosen = sorted(make.dice.sample(source, ninputs))
        tasks.append(make.task(Key(f"{name}-{i}"), [tasks[j].key for j in chosen]))
    return tasks


def tree(make: Maker, name: str, ntasks: int) -> list[TaskSpec]:
    """A reduction in pairs."""
    level = [make.task(Key(f"{name}-leaf-{i}")) for i in range(max(1, ntasks // 2))]
    tasks = list(level)
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [
            make.task(Key(f"{name}-{len(tasks)}-{i}"), [part.key for part in pair])
            for i, pair in enumerate(pairs)
        ]
        tasks += level
    return tasks


def chain(make: Maker, name: str, ntasks: int) -> list[TaskSpec]:
    """Each needs the one before."""
    tasks: list[TaskSpec] = []
    for i in range(ntasks):
        tasks.append(make.task(Key(f"{name}-{i}"), [tasks[-1].key] if tasks else []))
    return tasks


def shuffle(make: Maker, name: str, ntasks: int) -> list[TaskSpec]:
    """Each of the second half needs each of the first."""
    n = max(1, ntasks // 2)
    sources = [make.task(Key(f"{name}-in-{i}")) for i in range(n)]
    keys = [source.key for source in sources]
    return sources + [make.task(Key(f"{name}-out-{i}"), keys) for i in range(n)]


def roots(make: Maker, name: str, ntasks: int) -> list[TaskSpec]:
    """Nothing needs anything."""
    return [make.task(Key(f"{name}-{i}")) for i in range(ntasks)]


def fan_in(make: Maker, name: str, ntasks: int) -> list[TaskSpec]:
    """One needs all."""
    sources = [make.task(Key(f"{name}-{i}")) for i in range(max(1, ntasks - 1))]
    return [*sources, make.task(Key(f"{name}-sum"), [source.key for source in sources])]


def fan_out(make: Maker, name: str, ntasks: int) -> list[TaskSpec]:
    """All need one."""
    source = make.task(Key(f"{name}-base"))
    return [source] + [make.task(Key(f"{name}-{i}"), [source.key]) for i in range(ntasks - 1)]


SHAPES: Final[tuple[Shape, ...]] = (
    random_graph,
    random_graph,
    tree,
    tree,
    chain,
    shuffle,
    shuffle,
    roots,
    fan_in,
    fan_out,
)
"""Those that make workers fetch from each other come twice."""


def has_slots(index: int) -> bool:
    """Whether the worker at this place offers what tasks may ask for; the first does."""
    return index == 0 or index % 2 == 1


def locking(dice: Random, client: int, span_seconds: float) -> list[Act]:
    """Claims to two locks, to be kept for a while each; some wait, and some lose patience."""
    return [
        HoldLock(
            dice.random() * span_seconds,
            client,
            dice.choice(("one", "other")),
            seconds=dice.choice((0.0, 0.1, 0.5)) * span_seconds,
            patience_seconds=dice.choice((0.0, 0.1 * span_seconds, inf, inf)),
        )
        for _ in range(dice.choice((1, 3, 6)))
    ]


def joint_locking(dice: Random, client: int, span_seconds: float) -> list[Act]:
    """Claims to two of three locks together, in an order that crosses those of other clients."""
    acts: list[Act] = []
    for _ in range(dice.choice((1, 3, 6))):
        name, *others = dice.sample(("left", "middle", "right"), 2)
        acts.append(
            HoldLock(
                dice.random() * span_seconds,
                client,
                name,
                seconds=dice.choice((0.0, 0.1, 0.5)) * span_seconds,
                patience_seconds=dice.choice((0.0, 0.1 * span_seconds, inf, inf)),
                others=tuple(others),
            )
        )
    return acts


def trading(dice: Random, client: int, span_seconds: float) -> list[Act]:
    """Values into one queue and out of it; all lose patience sooner or later."""
    return [
        Trade(
            dice.random() * span_seconds,
            client,
            "queue",
            count=dice.choice((0, 0, 0, 1, 1, 2)),
            patience_seconds=dice.choice((0.0, 0.1, 1.0)) * span_seconds,
        )
        for _ in range(dice.choice((2, 6, 12)))
    ]


def members(dice: Random, client: int, span_seconds: float, nworkers: int) -> list[Act]:
    """Retries, copies, retirements and restarts; the last are rare, as they end so much."""
    acts: list[Act] = []
    for _ in range(dice.choice((1, 3, 6))):
        at = dice.random() * span_seconds
        kind = dice.choice(("retry", "replicate", "replicate", "rebalance", "retire", "retire"))
        if dice.random() < 0.1:
            kind = "restart"
        if kind == "retry":
            acts.append(Retry(at, client))
        elif kind == "replicate":
            acts.append(Replicate(at, client, dice.choice((1, 2)), dice.choice((0, 1, 2))))
        elif kind == "rebalance":
            acts.append(Rebalance(at, client))
        elif kind == "retire":
            chosen = tuple(i for i in range(nworkers) if dice.random() < dice.choice((0.3, 0.9)))
            acts.append(RetireSome(at, client, chosen, dice.choice((0.1, 2.0))))
        else:
            acts.append(Restart(at, client, dice.choice((0.01, 5.0))))
    return acts


def exchange(make: Maker, name: str, nshuffles: int) -> list[TaskSpec]:
    """Shuffles whose outputs are joined, and sometimes summed up."""
    dice = make.dice
    noutputs = dice.choice((1, 2, 4, 6))
    tasks: list[TaskSpec] = []
    barriers: list[Key] = []
    for index in range(nshuffles):
        key = Key(f"{name}.{index}-barrier")
        sources = [make.task(Key(f"{name}.{index}src-{i}")) for i in range(dice.choice((1, 2, 5)))]
        transfers = [
            replace(
                make.task(Key(f"{name}.{index}in-{i}"), [source.key]),
                role=TRANSFER,
                shuffle=key,
                partition=i,
                noutputs=noutputs,
                is_unsendable=False,
            )
            for i, source in enumerate(sources)
        ]
        barrier = make.task(key, [transfer.key for transfer in transfers])
        tasks += [*sources, *transfers]
        tasks.append(replace(barrier, role=BARRIER, noutputs=noutputs, nfailures=0))
        barriers.append(key)
    unpacks = [
        replace(make.task(Key(f"{name}.out-{i}"), barriers), role=UNPACK, partition=i)
        for i in range(noutputs)
    ]
    if dice.random() < 0.4:
        tasks = [_odd(dice, task) if task.role == TRANSFER else task for task in tasks]
    tasks += unpacks
    if dice.random() < 0.5:
        tasks.append(make.task(Key(f"{name}.sum-0"), [unpack.key for unpack in unpacks]))
    return tasks


def _odd(dice: Random, transfer: TaskSpec) -> TaskSpec:
    """It may give other rows each time, or be sent back as if its worker had a full disk."""
    return replace(transfer, is_fickle=dice.random() < 0.4, nsent_back=dice.choice((0, 0, 1, 2)))


def exchanging(make: Maker, client: int, span_seconds: float, nworkers: int) -> list[Act]:
    """Graphs with shuffles, of which some are let go of, or cancelled, before they have ended; and
    workers that retire meanwhile."""
    dice = make.dice
    acts: list[Act] = []
    for episode in range(dice.choice((1, 1, 2))):
        tasks = exchange(make, f"x{client}.{episode}", dice.choice((1, 1, 2)))
        needed = {key for task in tasks for key in task.inputs}
        wanted = tuple(task.key for task in tasks if task.key not in needed)
        if dice.random() < 0.3:
            wanted += tuple(task.key for task in tasks if task.role == UNPACK)
        wanted = tuple(dict.fromkeys(wanted))
        at = dice.random() ** 2 * span_seconds
        acts.append(Submit(at, client, tuple(tasks), wanted, nslices=dice.choice((1, 2, 4))))
        if dice.random() < 0.4:
            some = tuple(key for key in wanted if dice.random() < 0.6)
            kind = dice.choice((Release, Cancel))
            acts.append(kind(at + dice.random() * span_seconds, client, some))
        if dice.random() < 0.3:
            chosen = tuple(i for i in range(nworkers) if dice.random() < 0.5)
            acts.append(RetireSome(at + dice.random() * span_seconds, client, chosen, 2.0))
    return acts


@dataclass(slots=True)
class Script:
    """Writes what one client does."""

    dice: Random
    make: Maker
    client: int
    features: frozenset[str]
    addresses: tuple[str, ...]
    span_seconds: float
    public: list[TaskSpec]  # tasks that several clients submit
    held: list[Key] = field(default_factory=list)
    last_specs: dict[Key, TaskSpec] = field(default_factory=dict)
    acts: list[Act] = field(default_factory=list)
    nepisodes: int = 0

    def write(self, ntasks: int) -> list[Act]:
        """Episodes of submitting and what follows, until `ntasks` tasks were submitted."""
        left, at = ntasks, self._pause()
        while left > 0:
            n = min(left, self.dice.randint(1, max(2, ntasks)))
            self._submit(at, n)
            left -= n
            at = self._aftermath(at)
        if "leave" in self.features and self.dice.random() < 0.5:
            self.acts.append(Leave(at + self._pause(), self.client))
        return self.acts

    def _pause(self) -> float:
        return self.dice.random() ** 2 * self.span_seconds

    def _submit(self, at: float, ntasks: int) -> None:
        dice = self.dice
        name = f"c{self.client}.{self.nepisodes}"
        self.nepisodes += 1
        tasks = dice.choice(SHAPES)(self.make, name, ntasks)
        if self.held and "external" in self.features:
            tasks = [self._with_external(task) for task in tasks]
        if self.public and "shared" in self.features and dice.random() < 0.6:
            tasks = self.public + tasks
        for task in tasks:
            self.last_specs[task.key] = task
        wanted: tuple[Key, ...] | None = None
        if "graph" in self.features and dice.random() < 0.6:
            needed = {key for task in tasks for key in task.inputs}
            sinks = [task.key for task in tasks if task.key not in needed]
            extra = [task.key for task in tasks if dice.random() < 0.1 and task.key in needed]
            wanted = tuple(sinks + extra)
        self.held += wanted if wanted is not None else [task.key for task in tasks]
        self.acts.append(
            Submit(
                at,
                self.client,
                tuple(tasks),
                wanted,
                self._options(),
                nslices=dice.choice((1, 1, 2, 4)),
                bundle_size=dice.choice((2, 5, 64)) if "bundles" in self.features else 1,
            )
        )

    def _with_external(self, task: TaskSpec) -> TaskSpec:
        if self.dice.random() > 0.2:
            return task
        key = self.dice.choice(self.held)
        if key in task.inputs or key == task.key:
            return task
        return replace(task, inputs=(*task.inputs, key))

    def _options(self) -> TaskOptions | None:
        dice, on = self.dice, self.features
        options = TaskOptions(
            priority=dice.choice((0.0, 0.0, 5.0, -1.5)) if "priorities" in on else 0.0,
            retries=dice.choice((0, 1, 3)) if "retries" in on else 0,
            workers=(
                [dice.choice(self.addresses)]
                if "pinned" in on and self.addresses and dice.random() < 0.3
                else []
            ),
            allow_other_workers="loose" in on and dice.random() < 0.5,
            resources={"slots": 1.0} if "resources" in on and dice.random() < 0.4 else {},
        )
        if options.resources and any(not has_slots(worker_index(n)) for n in options.workers):
            options = structs.replace(options, resources={})  # or it could never run
        return None if options == TaskOptions() else options

    def _aftermath(self, at: float) -> float:
        """Release, cancel, submit again, want by name: in any order, as the features allow."""
        dice, on = self.dice, self.features
        for _ in range(dice.randrange(4)):
            at += self._pause()
            kind = dice.choice(("release", "cancel", "resubmit", "want", "scatter", "ask"))
            if kind not in on:
                continue
            if kind == "want":
                self._want(at)
            elif kind == "ask":
                self.acts.append(Ask(at, self.client, dice.choice(("workers", "holders"))))
            elif kind == "scatter":
                self._scatter(at)
            elif self.held:
                some = tuple(k for k in self.held if dice.random() < dice.choice((0.2, 0.6, 1.1)))
                if kind == "cancel":
                    self.acts.append(Cancel(at, self.client, some, force=dice.random() < 0.2))
                else:
                    self.acts.append(Release(at, self.client, some))
                self.held = [key for key in self.held if key not in some]
                if kind == "resubmit":
                    self._resubmit(at, some)
                elif some and "want" in on and dice.random() < 0.2:
                    self.acts.append(Want(at, self.client, some[0]))  # with the same breath
        return at + self._pause()

    def _resubmit(self, at: float, keys: tuple[Key, ...]) -> None:
        """The same keys again, most of them with another value."""
        at += self.dice.choice((0.0, 1e-4, 0.02, 0.3))
        again = []
        for key in keys:
            old = self.last_specs.get(key)
            if old is None:
                continue
            spec = old
            if self.dice.random() < 0.8:
                spec = self.make.task(key, old.inputs if self.dice.random() < 0.7 else ())
            self.last_specs[key] = spec
            again.append(spec)
        if again:
            self.acts.append(Submit(at, self.client, tuple(again), None, self._options()))
            self.held += [spec.key for spec in again]

    def _want(self, at: float) -> None:
        known = [task.key for task in self.public] or self.held
        if known:
            key = self.dice.choice(known)
            self.acts.append(Want(at, self.client, key))
            self.held.append(key)

    def _scatter(self, at: float) -> None:
        name = f"c{self.client}.s{len(self.acts)}"
        values = tuple(
            replace(self.make.task(Key(f"{name}-{i}")), is_unsendable=False)
            for i in range(self.dice.choice((1, 1, 3)))
        )
        self.acts.append(Scatter(at, self.client, values, ncopies=self.dice.choice((1, 1, 2, 0))))
        self.held += [value.key for value in values]
