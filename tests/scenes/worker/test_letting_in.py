"""What comes into memory waits until there is room, and room is made for what waits."""

import pytest

from shoal.worker.policies.room import FAVOURS_MAX
from tests.scenes.worker.scene import Scene, name_of


@pytest.fixture
def scene() -> Scene:
    """What is larger than ten bytes may be written; nothing may take it above a hundred."""
    scene = Scene(writable_nbytes_min=10)
    scene.limit(100)
    return scene


def results(scene: Scene, *tasks: str, nbytes: int = 10) -> None:
    """These were computed here, in this order."""
    for task in tasks:
        scene.run(f"{task}#1")
        scene.finish(f"{task}#1", nbytes=nbytes)
    scene.take()


def test_a_run_waits_until_what_it_takes_has_room(scene: Scene) -> None:
    """Of its kind it is known that it takes 40 bytes."""
    scene.limit(100, y=40)
    results(scene, "a", "b", nbytes=30)
    scene.look(70)
    scene.run("x#1")
    scene.run("y#1")
    assert scene.take() == ["start x#1"]
    assert scene.lacking == 10
    scene.finish("x#1")
    scene.look(60)
    assert scene.take() == ["say x#1 finished", "start y#1"]
    assert scene.lacking == 0


def test_a_run_of_an_unknown_kind_is_taken_to_need_as_much_as_its_inputs(scene: Scene) -> None:
    results(scene, "a", "b", nbytes=25)
    scene.look(70)
    scene.run("y#1", a=None, b=None)
    assert scene.take() == []
    assert scene.lacking == 20
    scene.look(50)
    assert scene.take() == ["start y#1"]


def test_runs_that_have_begun_are_counted_until_they_have_ended(scene: Scene) -> None:
    scene.limit(100, x=15, y=15, z=15)
    scene.look(68)
    scene.run("x#1")
    scene.run("y#1")
    scene.run("z#1")
    assert scene.take() == ["start x#1", "start y#1"]
    assert scene.lacking == 13
    scene.look(98, grown=30)  # so that nothing more is promised
    assert scene.lacking == 13
    scene.finish("x#1")
    assert scene.take() == ["say x#1 finished"]
    scene.look(83, grown=15)
    assert scene.take() == ["start z#1"]


def test_what_was_handed_over_while_there_was_room_comes_back_as_it_gets_tight(
    scene: Scene,
) -> None:
    scene.limit(100, x=30, y=30)
    scene.run("x#1", "y#1")
    scene.begun = {"x#1"}
    assert scene.take() == ["start x#1 y#1"]
    scene.look(70)
    assert scene.take() == ["hold x#1 y#1"]
    assert scene.lacking == 30
    scene.finish("x#1")
    assert scene.take() == ["start y#1", "say x#1 finished"]


def test_values_from_disk_and_from_peers_wait_behind_runs_that_are_ready(scene: Scene) -> None:
    scene.limit(100, y=50)
    results(scene, "a")
    scene.spill(10)
    scene.written("a")
    scene.take()
    scene.look(60)
    scene.run("y#1")
    scene.run("w#1", a=None)
    scene.run("v#1", p="A")
    assert scene.take() == []
    scene.look(30)
    assert scene.take() == ["start y#1", "read a", "ask A for p"]


def test_what_is_on_its_way_is_counted(scene: Scene) -> None:
    """Each is of ten bytes, as its size is told."""
    scene.look(85)
    scene.run("y#1", p="A")
    scene.run("z#1", q="B")
    assert scene.take() == ["ask A for p"]
    assert scene.lacking == 5
    scene.arrive("A", "p")
    scene.look(75)
    assert "ask B for q" in scene.take()


def test_nothing_waits_for_ever(scene: Scene) -> None:
    """Nothing can be written, and nothing runs: what may take too much is tried."""
    scene.limit(100, x=30, y=30)
    scene.look(90)
    scene.run("x#1")
    scene.run("y#1")
    assert scene.take() == []
    scene.let_in()
    assert scene.take() == ["start x#1"]
    scene.let_in()
    assert scene.take() == []  # one does something
    scene.finish("x#1")
    assert scene.take() == ["say x#1 finished"]
    scene.let_in()
    assert scene.take() == ["start y#1"]


def test_who_comes_later_is_not_let_in_as_nobody_was_when_no_room_could_be_made(
    scene: Scene,
) -> None:
    scene.limit(100, x=30)
    scene.look(90)
    scene.let_in()
    scene.run("x#1")
    assert scene.take() == []
    assert scene.lacking == 20


def test_a_run_that_waits_for_other_tasks_is_not_waited_for(scene: Scene) -> None:
    """It may wait for the one that waits for room."""
    scene.limit(100, y=30)
    scene.look(90)
    scene.run("x#1")
    scene.run("y#1")
    assert scene.take() == ["start x#1"]
    scene.let_in()
    assert scene.take() == []
    scene.machine.waiting(1)
    scene.let_in()
    assert scene.take() == ["start y#1"]
    assert scene.machine.is_under_way()


def test_a_run_that_waits_for_another_life_of_the_scheduler_hides_none_that_works(
    scene: Scene,
) -> None:
    """x waits on, though its scheduler is gone; y is of the next one, and will leave room."""
    scene.limit(100, z=30)
    scene.run("x#1")
    scene.take()
    scene.machine.waiting(1)
    scene.lose_scheduler()
    scene.welcome(epoch=2)
    scene.look(90)
    scene.run("y#1")
    scene.run("z#1")
    assert "start y#1" in scene.take()
    assert scene.machine.is_under_way()
    scene.let_in()
    assert scene.take() == []


def test_runs_do_not_take_room_from_each_other_for_ever(scene: Scene) -> None:
    """Each waits for a peer; what left memory for the one would be read for the other at once."""
    results(scene, "a", "b")
    scene.look(95)
    scene.run("c#1", a=None, p="A")
    scene.run("d#1", b=None, q="B")
    assert scene.take() == []
    assert scene.spill(scene.lacking) == 10
    assert scene.take() == ["write b"]
    scene.written("b")
    scene.look(85)
    assert scene.take() == ["read b"]
    _read(scene, 95)
    assert scene.spill(scene.lacking) == 10
    scene.look(85)
    assert scene.take() == ["evict b", "read b"]
    _read(scene, 95)
    assert scene.spill(scene.lacking) == 0
    scene.let_in()
    assert scene.take() == ["ask A for p"]


def _read(scene: Scene, process: int) -> None:
    """The oldest read has ended, and the process has so much by then."""
    scene.machine.value_read(scene.reads.pop(0), scene.now)
    scene.look(process)


def test_inputs_of_runs_that_wait_make_room_for_the_first(scene: Scene) -> None:
    """Both wait, and their inputs are all that could be written: those of the first stay."""
    results(scene, "a", "b", nbytes=40)
    scene.look(90)
    scene.run("y#1", a=None)
    scene.run("z#1", b=None)
    assert scene.lacking == 30
    assert scene.spill(30) == 40
    assert scene.take() == ["write b"]
    assert scene.written("b")
    scene.look(50)
    assert scene.take() == ["start y#1", "hold y#1", "start y#1"]  # uncounted, until z asks


def test_inputs_make_room_for_as_much_as_the_first_needed_at_first(scene: Scene) -> None:
    """Its ten are on disk, and come one after the other: what has come is not needed any more."""
    first, others = "ABCDEFGHIJ", "abcdefghij"
    results(scene, *first)
    while scene.spill(100):
        while scene.writes:
            scene.written(name_of(scene.writes[0].task))
    results(scene, *others)
    process = 95
    scene.look(process)
    scene.run("y#1", **dict.fromkeys(first))
    scene.run("z#1", p="X", **dict.fromkeys(others))
    nread = 0
    while scene.spill(scene.lacking):
        while scene.writes:
            process -= 10
            scene.written(name_of(scene.writes[0].task))
        scene.look(process)
        while scene.reads:
            nread += 1
            process += 10
            _read(scene, process)
    assert nread == len(first)


def test_a_worker_without_a_limit_counts_nothing() -> None:
    scene = Scene()
    scene.look(1 << 40)
    scene.run("x#1", "y#1")
    assert scene.take() == ["start x#1 y#1"]


def test_runs_whose_inputs_are_small_do_not_take_room_from_each_other_nearly_for_ever(
    scene: Scene,
) -> None:
    """What c lacks is much, and what d has is little: that makes room for c, and is read again."""
    scene.limit(100_000)
    results(scene, "b")
    scene.look(95_000)
    scene.sizes["p"] = 90_000
    scene.run("c#1", p="A")
    scene.run("d#1", b=None, q="B")
    nrounds = 0
    while scene.spill(scene.lacking):
        nrounds += 1
        if scene.writes:
            scene.written("b")
        scene.look(95_000)
        while scene.reads:
            _read(scene, 95_000)
    assert nrounds == FAVOURS_MAX
    scene.let_in()
    assert "ask A for p" in scene.take()
