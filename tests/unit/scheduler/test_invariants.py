"""Every invariant notices when it is broken: a checker that never complains proves nothing."""

from collections.abc import Callable

import pytest

from shoal.ids import ClientTaskId, CodeId, Key, RunId, TaskId
from shoal.protocol.messages import Failure, TaskOptions
from shoal.scheduler.machine.invariants import check
from shoal.scheduler.model.entities import (
    ERRED,
    FORGOTTEN,
    NO_WORKER,
    QUEUED,
    RELEASED,
    WAITING,
    Code,
)
from tests.scenes.scheduler.scene import Scene


def a_scene() -> Scene:
    """A task in every state: u is released, v in the backlog of a, w waits, x is in memory, ..."""
    scene = Scene()
    scene.workers("a", "b")
    scene.submit(u=[], x=["u"], wanted=["x"])
    scene.finish("u")
    scene.finish("x")
    scene.submit(x0=["x"], x1=["x"], v=["x"], options=TaskOptions(workers=["a"]))
    scene.submit(w=["v"], e=[])
    scene.submit(n=[], options=TaskOptions(workers=["nobody"]))
    scene.scatter("s")
    scene.fail("e")
    scene.submit(b1=[], b2=[], q=[])
    states = {key: scene.state(key) for key in ("u", "v", "w", "x", "x0", "e", "n", "s", "q")}
    assert states == {
        "u": "released",
        "v": "processing",
        "w": "waiting",
        "x": "memory",
        "x0": "processing",
        "e": "erred",
        "n": "no-worker",
        "s": "waiting",
        "q": "queued",
    }
    assert not list(check(scene.machine.state))
    return scene


def put(scene: Scene, key: str, **fields: object) -> None:
    """Set fields of a task behind the machine's back."""
    for name, value in fields.items():
        setattr(scene.task(key), name, value)


def on(scene: Scene, worker: str, **fields: object) -> None:
    """Set fields of a worker."""
    for name, value in fields.items():
        setattr(scene.worker(worker), name, value)


OTHER = Code(CodeId(99), b"")

BROKEN: dict[str, Callable[[Scene], object]] = {
    "'x' memory> is memory but is not held": lambda s: put(s, "x", who_has=None),
    "'w' waiting> is waiting but is held": lambda s: put(s, "w", value=b"1"),
    "'q' processing> is processing but placed on None": lambda s: put(s, "q", state="processing"),
    "'q' queued> has run 5 on no worker": lambda s: put(s, "q", run=RunId(5)),
    "list of unrunnable tasks disagree": lambda s: put(s, "q", state=NO_WORKER),
    "'q' erred> is erred with failure None": lambda s: put(s, "q", state=ERRED),
    "'w' waiting> is waiting with failure": lambda s: put(s, "w", failure=Failure(b"", "?")),
    "'q' forgotten> is forgotten but indexed": lambda s: put(s, "q", state=FORGOTTEN),
    "'q' released> is needed but nothing is done": lambda s: put(s, "q", state=RELEASED),
    "'q' released> is of no use but not forgotten": lambda s: put(s, "q", state=RELEASED, wants=()),
    "'q' queued> is not needed by anybody": lambda s: put(s, "q", wants=()),
    "'q' waiting> waits for nothing": lambda s: put(s, "q", state=WAITING),
    "'q' queued> has blame 7": lambda s: put(s, "q", blame=7),
    "'w' queued> is ready though its input": lambda s: put(s, "w", state=QUEUED),
    "is not the task with number": lambda s: put(s, "q", id=TaskId(99)),
    "depends on <Task 'u' released>, which has gone": lambda s: s.machine.state.tasks.pop(Key("u")),
    "does not know its dependent": lambda s: put(s, "u", dependents=None),
    "does not know its dependency": lambda s: put(s, "x", dependencies=()),
    "'x' memory> is held by <Worker": lambda s: s.machine.state.workers.pop("tcp://a:1"),
    "does not know that it holds <Task 'x'": lambda s: s.worker("a").has_what.clear(),
    "'x0' processing> is placed on <Worker": lambda s: s.machine.state.workers.pop("tcp://a:1"),
    "does not know that <Task 'x0'": lambda s: s.worker("a").processing.clear(),
    "has <Code 99: 0 B, 0 users>, which has gone": lambda s: put(s, "q", code=OTHER),
    "'x' memory> counts 7 waiters": lambda s: put(s, "x", nwaiters=7),
    "'w' waiting> waits for 2 inputs, 1 are missing": lambda s: put(s, "w", nwaiting=2),
    "'w' waiting> waits for <Task 'v' released>": lambda s: put(s, "v", state=RELEASED),
    "counts 9 runs out": lambda s: on(s, "a", nsent=9),
    "counts 9 work out": lambda s: on(s, "a", sent_us=9),
    "counts 9 work in the backlog": lambda s: on(s, "a", backlog_us=9),
    "counts 9 bytes held": lambda s: on(s, "a", nbytes=9),
    "has <Task 'x0' processing>, which is placed on None": lambda s: put(s, "x0", worker=None),
    "holds <Task 'x' memory>, which does not know it": lambda s: put(s, "x", who_has=None),
    "but has no entry in its heap": lambda s: s.worker("a").backlog.clear(),
    "was told <Code": lambda s: s.worker("a").told.update({OTHER: None}),
    "is not in the index loads": lambda s: s.machine.state.loads.discard(s.worker("a")),
    "is in the index backlogged": lambda s: s.machine.state.backlogged.put(s.worker("b"), 1),
    "in the wrong bucket of loads": lambda s: s.machine.state.loads.put(s.worker("a"), 2**60),
    "workers with a pipe disagree": lambda s: s.machine.state.piped.clear(),
    "tasks have keys": lambda s: s.machine.state.task_by_id.popitem(),
    "workers have addresses": lambda s: s.machine.state.worker_by_id.popitem(),
    "counted by state": lambda s: s.machine.state.ntasks.update(memory=9),
    "users in truth": lambda s: setattr(s.task("q").code, "nusers", 1),
    "which does not know it": lambda s: put(s, "q", wants=()),
    "holds <Task 'u' released>, which has gone": lambda s: s.actor("c").client.held.update(
        {ClientTaskId(1): s.machine.state.tasks.pop(Key("u"))}
    ),
    "wanted by clients that do not know it": lambda s: s.actor("c").client.tasks.popitem(),
    "held by clients that do not know it": lambda s: put(s, "q", nholds=1),
    "tasks are queued while": lambda s: s.machine.state.open.put(s.worker("b"), 1),
    "has room and a backlog": lambda s: s.machine.state.open.put(s.worker("a"), 1),
    "is awaited as a scattered value, but is queued": lambda s: s.machine.state.scattering.update(
        {s.task("q"): {}}
    ),
    "but nobody brings it": lambda s: s.machine.state.scattering.update({s.task("s"): {}}),
    "waits for a value that nobody brings": lambda s: s.machine.state.scattering.clear(),
    "is to be brought by": lambda s: s.machine.state.clients.clear(),
    "shall be put on": lambda s: s.machine.state.workers.clear(),
}


@pytest.mark.parametrize("sentence", list(BROKEN))
def test_what_is_broken_is_said(sentence: str) -> None:
    """One thing is wrong, and some sentence names it."""
    scene = a_scene()
    BROKEN[sentence](scene)
    found = list(check(scene.machine.state))
    assert any(sentence in line for line in found), found
