"""Values that leave memory for disk, and come back for the runs that need them."""

import pytest

from tests.scenes.worker.scene import Scene


@pytest.fixture
def scene() -> Scene:
    """Everything is large enough to be written; 10 bytes each."""
    return Scene(writable_nbytes_min=10)


def results(scene: Scene, *tasks: str) -> None:
    """These were computed here, in this order."""
    for task in tasks:
        scene.run(f"{task}#1")
        scene.finish(f"{task}#1")
    scene.take()


def on_disk(scene: Scene, *tasks: str) -> None:
    """So were these, and written."""
    results(scene, *tasks)
    assert scene.spill(10 * len(tasks)) == 10 * len(tasks)
    for task in tasks:
        assert scene.written(task)
    scene.take()


def test_the_oldest_values_leave_until_it_is_enough(scene: Scene) -> None:
    results(scene, "a", "b", "c")
    assert scene.spill(15) == 20
    assert scene.take() == ["write a", "write b"]
    assert scene.written("a")
    assert scene.written("b")
    assert scene.take() == []  # they are replicas as before
    assert scene.inventory() == "1: a b c"


def test_what_is_small_stays() -> None:
    scene = Scene(writable_nbytes_min=11)
    results(scene, "a")
    assert scene.spill(100) == 0
    assert scene.take() == []


def test_what_was_used_since_is_passed_over_once(scene: Scene) -> None:
    """a is the input of a run that has ended, b was sent to a peer; c is younger than both."""
    results(scene, "a", "b", "c")
    scene.run("y#1", a=None)
    scene.finish("y#1")
    scene.serve("b")
    scene.take()
    scene.spill(1)
    assert scene.take() == ["write c"]
    scene.spill(1)
    assert scene.take() == ["write y"]
    scene.spill(1)
    assert scene.take() == ["write a"]


def test_what_runs_use_stays(scene: Scene) -> None:
    results(scene, "a", "b")
    scene.run("y#1", a=None)
    scene.take()
    assert scene.spill(100) == 10
    assert scene.take() == ["write b"]
    assert scene.spill(100) == 0


def test_a_run_waits_for_its_inputs_to_be_read(scene: Scene) -> None:
    on_disk(scene, "a", "b")
    results(scene, "c")
    scene.run("y#1", a=None, b=None, c=None)
    assert scene.take() == ["read a", "read b"]
    assert scene.read("b")
    assert scene.take() == []
    assert scene.read("a")
    assert scene.take() == ["start y#1"]


def test_a_value_is_read_once_for_all_that_wait_for_it(scene: Scene) -> None:
    on_disk(scene, "a")
    scene.run("y#1", a=None)
    scene.run("z#1", a=None)
    assert scene.take() == ["read a"]
    assert scene.read("a")
    assert scene.take() == ["start y#1 z#1"]


def test_inputs_may_be_on_disk_and_at_peers(scene: Scene) -> None:
    """The run begins with the last of them, whichever that is."""
    on_disk(scene, "a", "b")
    scene.run("y#1", a=None, p="A")
    scene.run("z#1", b=None, q="A")
    assert scene.take() == ["read a", "ask A for p", "read b", "ask A for q"]
    scene.arrive("A", "p")
    assert scene.take() == ["say added p"]
    scene.read("a")
    assert scene.take() == ["start y#1"]
    scene.read("b")
    assert scene.take() == []
    scene.arrive("A", "q")
    assert scene.take() == ["start z#1", "say added q"]


def test_to_let_go_of_what_was_read_costs_nothing(scene: Scene) -> None:
    """Its file is still there, and goes with the value."""
    on_disk(scene, "a")
    scene.run("y#1", a=None)
    scene.read("a")
    scene.finish("y#1")
    scene.take()
    assert scene.spill(5) == 10
    assert scene.take() == ["evict a"]
    scene.run("z#1", a=None)
    assert scene.take() == ["read a"]
    scene.read("a")
    scene.finish("z#1")
    scene.free("a")
    assert scene.take()[-1] == "drop a"


def test_what_was_read_and_used_again_is_not_the_first_to_go(scene: Scene) -> None:
    """a is needed by one task after another, b was needed once."""
    on_disk(scene, "a", "b")
    scene.run("x#1", a=None)
    scene.run("y#1", b=None)
    scene.read("a")
    scene.read("b")
    scene.run("z#1", a=None)
    for task in ("x#1", "y#1", "z#1"):
        scene.finish(task)
    scene.take()
    scene.spill(1)
    assert scene.take() == ["evict b"]


def test_so_many_values_are_read_at_once_and_no_more(scene: Scene) -> None:
    """Two: what was read waits in memory for its run."""
    on_disk(scene, "a", "b", "c")
    scene.run("x#1", a=None)
    scene.run("y#1", b=None, c=None)
    assert scene.take() == ["read a", "read b"]
    scene.recall("y#1")
    scene.read("a")
    assert scene.take() == ["say y#1 returned", "start x#1"]
    assert not scene.read("b")
    scene.run("y#2", b=None, c=None)
    assert scene.take() == ["read b", "read c"]


def test_runs_are_held_while_results_come_faster_than_they_are_written(scene: Scene) -> None:
    """Nobody is told; and what waits for disk is read one at a time."""
    on_disk(scene, "a", "b")
    scene.run("x#1")
    scene.take()
    scene.hold()
    assert scene.take() == ["hold x#1"]
    scene.run("y#1", a=None)
    scene.run("z#1", b=None)
    scene.run("w#1")
    assert scene.take() == ["read a"]
    scene.read("a")
    assert scene.take() == ["read b"]
    scene.read("b")
    assert scene.take() == []
    scene.recall("w#1")
    scene.go_on()
    assert scene.take() == ["say w#1 returned", "start x#1 y#1 z#1"]


def test_a_pause_outlasts_that(scene: Scene) -> None:
    scene.run("x#1")
    scene.hold()
    scene.pause()
    scene.go_on()
    scene.take()
    scene.resume()
    assert scene.take() == ["start x#1", "say not paused: memory is free"]


def test_what_is_read_for_nobody_stays_on_disk(scene: Scene) -> None:
    """The run was recalled in the meantime."""
    on_disk(scene, "a")
    scene.run("y#1", a=None)
    scene.recall("y#1")
    assert scene.take() == ["read a", "say y#1 returned"]
    assert not scene.read("a")
    scene.run("y#2", a=None)
    assert scene.take() == ["read a"]


def test_a_run_that_comes_while_its_input_is_written_keeps_it_in_memory(scene: Scene) -> None:
    """And begins at once; the file is kept."""
    results(scene, "a")
    scene.spill(1)
    scene.run("y#1", a=None)
    assert scene.take() == ["write a", "start y#1"]
    assert not scene.written("a")
    scene.finish("y#1")
    scene.take()
    scene.spill(1)
    assert scene.take() == ["write y"]  # and a, which was used meanwhile, is the next
    scene.spill(1)
    assert scene.take() == ["evict a"]


def test_what_is_freed_as_it_is_written_or_read_is_dropped(scene: Scene) -> None:
    """What the threads say of it later is of no interest."""
    on_disk(scene, "a")
    results(scene, "b")
    scene.spill(1)
    scene.run("y#1", a=None)
    scene.recall("y#1")
    assert scene.take() == ["write b", "read a", "say y#1 returned"]
    scene.free("a", "b")
    assert scene.take() == ["drop a b"]
    assert not scene.written("b")
    assert not scene.read("a")
    assert scene.inventory() == "1: "


def test_a_freed_input_is_read_for_its_run_and_goes_with_it(scene: Scene) -> None:
    on_disk(scene, "a")
    scene.run("y#1", a=None)
    scene.free("a")
    scene.read("a")
    assert scene.take() == ["read a", "start y#1"]
    scene.finish("y#1")
    assert scene.take() == ["drop a", "say y#1 finished"]


def test_a_lost_file_is_a_lost_replica(scene: Scene) -> None:
    """The runs that waited for it go back; z, which does not need it, goes on."""
    on_disk(scene, "a", "b")
    scene.run("y#1", a=None, b=None)
    scene.run("z#1", b=None)
    scene.take()
    scene.not_read("a")
    assert scene.take() == ["drop a", "say gone a", "say y#1 returned"]
    scene.read("b")
    assert scene.take() == ["start z#1"]
    assert scene.inventory() == "1: b"


def test_a_lost_file_of_what_was_freed_is_news_to_nobody(scene: Scene) -> None:
    on_disk(scene, "a")
    scene.run("y#1", a=None)
    scene.free("a")
    scene.take()
    scene.not_read("a")
    assert scene.take() == ["drop a", "say y#1 returned"]


def test_a_file_that_a_peer_can_not_have_is_lost_as_well(scene: Scene) -> None:
    """Unless it is being read, or is in memory again: then that decides."""
    on_disk(scene, "a", "b")
    scene.lose_file("a")
    assert scene.take() == ["drop a", "say gone a"]
    scene.run("y#1", b=None)
    scene.read("b")
    scene.take()
    scene.lose_file("b")
    assert scene.take() == []


def test_a_value_that_comes_anew_takes_the_place_of_the_one_on_disk(scene: Scene) -> None:
    """y waits for a to be read when a client scatters it again."""
    on_disk(scene, "a")
    scene.run("y#1", a=None)
    scene.take()
    scene.put("a")
    assert scene.take() == ["start y#1", "say added a"]
    assert not scene.read("a")
    scene.finish("y#1")
    scene.take()
    scene.spill(11)
    assert scene.take() == ["write a", "write y"]


def test_so_much_is_written_at_once_and_no_more() -> None:
    """25 bytes; one value is always allowed."""
    scene = Scene(writable_nbytes_min=10, writing_bytes_max=25)
    results(scene, "a", "b", "c", "d")
    assert scene.spill(100) == 20
    assert scene.take() == ["write a", "write b"]
    assert scene.spill(100) == 0
    scene.written("b")
    assert scene.spill(100) == 10
    assert scene.take() == ["write c"]
    scene = Scene(writable_nbytes_min=10, writing_bytes_max=5)
    results(scene, "a", "b")
    assert scene.spill(100) == 10


def test_what_the_disk_does_not_take_stays_and_is_the_next_to_be_tried(scene: Scene) -> None:
    results(scene, "a", "b")
    scene.spill(1)
    scene.not_written("a")
    scene.take()
    assert scene.spill(100, may_write=False) == 0
    scene.spill(1)
    assert scene.take() == ["write a"]


def test_what_can_not_be_written_at_all_is_not_tried_again(scene: Scene) -> None:
    results(scene, "a", "b")
    scene.spill(1)
    scene.not_written("a", is_for_good=True)
    scene.take()
    assert scene.spill(100) == 10
    assert scene.take() == ["write b"]


def test_a_full_disk_gets_room_by_files_of_what_is_in_memory(scene: Scene) -> None:
    on_disk(scene, "a", "b")
    scene.run("y#1", a=None)
    scene.read("a")
    scene.finish("y#1")
    scene.take()
    assert scene.forget_files() == "a"
    assert scene.spill(100, may_write=False) == 0
    scene.spill(100)
    assert scene.take() == ["write y", "write a"]


def test_a_paused_worker_reads_nothing(scene: Scene) -> None:
    """It would fill its memory for runs that don't begin."""
    on_disk(scene, "a")
    scene.pause()
    scene.run("y#1", a=None)
    scene.take()
    scene.resume()
    assert scene.take() == ["read a", "say not paused: memory is free"]
    scene.read("a")
    assert scene.take() == ["start y#1"]


def test_inputs_of_runs_that_are_held_back_may_leave_memory(scene: Scene) -> None:
    """x has begun, so its input stays; y and z wait, and are ready again when a is."""
    results(scene, "a", "b")
    scene.run("x#1", b=None)
    scene.run("y#1", a=None)
    scene.run("z#1", a=None)
    scene.begun.add("x#1")
    scene.pause()
    scene.take()
    assert scene.spill(100) == 10
    assert scene.take() == ["write a"]
    assert scene.written("a")
    scene.recall("z#1")
    assert scene.take() == ["say z#1 returned"]
    scene.resume()
    assert scene.take() == ["read a", "say not paused: memory is free"]
    scene.read("a")
    assert scene.take() == ["start y#1"]


def test_a_run_that_waits_for_disk_is_given_up_with_its_scheduler(scene: Scene) -> None:
    """What was read then is of no use, and what is on disk is in the inventory."""
    on_disk(scene, "a")
    scene.run("y#1", a=None)
    scene.take()
    scene.lose_scheduler()
    scene.take()
    assert not scene.read("a")
    scene.welcome()
    assert scene.inventory() == "1: a"


def test_in_another_epoch_what_is_on_disk_stays_there(scene: Scene) -> None:
    """What is being read or written is not any more."""
    on_disk(scene, "a")
    results(scene, "b")
    scene.run("y#1", a=None)
    scene.spill(1)
    scene.take()
    scene.welcome(epoch=2)
    assert scene.take() == ["renumber a to -1 b to -2"]
    assert not scene.read("a")
    assert not scene.written("b")
    assert scene.inventory() == "2: a b"
    scene.adopt(a="a", b="b")
    scene.take()
    scene.run("z#1", a=None)
    assert scene.take() == ["read a"]
    assert scene.spill(1) == 10
    assert scene.take() == ["write b"]


def test_what_a_run_waits_for_is_asked_for_once(scene: Scene) -> None:
    """However many of its inputs leave memory, one after the other, while it is held back."""
    results(scene, "a", "b", "c", "d")
    scene.pause()
    scene.run("x#1", a=None, b=None, c=None, d=None)
    scene.run("y#1", a=None, b=None, c=None, d=None)
    scene.spill(100)
    for task in "abcd":
        assert scene.written(task)
    assert len(scene.machine.state.unasked) == 4
    scene.take()
    scene.resume()
    assert scene.take()[:2] == ["read a", "read b"]


def test_one_run_goes_on_where_reading_its_inputs_has_filled_memory(scene: Scene) -> None:
    """Nothing else would end, so that it would be sent, and read, again and again.

    It can't be recalled any more, and what it uses stays; z waits until the worker resumes.
    """
    on_disk(scene, "a", "b", "c")
    scene.run("x#1", a=None, b=None, c=None)
    scene.run("y#1", c=None)
    assert scene.take() == ["read a", "read b"]
    scene.read("a")
    scene.pause()
    scene.recall("x#1", "y#1")
    assert scene.spill(100) == 0
    assert scene.take() == ["read c", "say paused: memory is short", "say y#1 returned"]
    scene.read("b")
    scene.run("z#1", a=None)
    assert scene.take() == []
    scene.read("c")
    assert scene.take() == ["start x#1"]
    scene.finish("x#1")
    scene.take()
    assert scene.spill(100) == 30
    scene.resume()
    went = scene.take()
    assert went == ["evict b c", "write x", "start z#1", "say not paused: memory is free"]


def test_no_run_goes_on_where_another_executes(scene: Scene) -> None:
    """What that uses is free once it ends.  And one that was handed over may be the one."""
    on_disk(scene, "a")
    results(scene, "b")
    scene.run("x#1", b=None)
    scene.begun.add("x#1")
    scene.run("y#1", a=None)
    scene.read("a")
    scene.take()
    scene.pause()
    assert scene.take() == ["hold x#1 y#1", "say paused: memory is short"]
    scene.finish("x#1")
    scene.take()
    scene.resume()
    assert "start y#1" in scene.take()
    scene.pause()
    scene.run("z#1")
    assert scene.take() == ["hold y#1", "say paused: memory is short", "start y#1"]
