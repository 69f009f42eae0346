"""Shuffles: barriers that nobody runs, shards that are lost, and what is done again."""

import pytest

from shoal.observe.extensions import extensions_of
from shoal.protocol.framing import ProtocolError
from shoal.protocol.membership import RestartWorkers
from shoal.protocol.messages import TaskOptions
from shoal.protocol.shuffles import ShardsMade
from tests.scenes.scheduler.scene import Scene
from tests.scenes.scheduler.shuffling import (
    GIB,
    all_cut,
    cut,
    define,
    epoch,
    join,
    locate,
    submit_shuffle,
    value_of,
)


def runs(scene: Scene) -> list[str]:
    """What was said to workers."""
    return [line for line in scene.take() if not line.startswith("c:")]


def test_a_barrier_is_run_by_nobody_and_its_value_is_its_epoch(scene: Scene) -> None:
    """Once all transfers are in memory the unpacks begin, and the barrier comes along inline."""
    scene.workers("a", "b")
    submit_shuffle(scene)
    assert scene.take() == ["a: run t0 #1", "b: run t1 #1"]
    cut(scene, "t0")
    assert scene.take() == []
    cut(scene, "t1")
    assert scene.take() == ["a: run u0 #1 (s inline)", "b: run u1 #1 (s inline)"]
    assert value_of(scene) == epoch(scene) == 1


def test_shards_are_kept_until_the_last_output_is_made(scene: Scene) -> None:
    """The transfers have done what they were for once the barrier is in memory, and yet they stay;
    with the last unpack the barrier goes, and they with it."""
    all_cut(scene)
    scene.take()
    join(scene, "u0", 0)
    assert scene.take() == ["c: u0 in memory at a"]
    join(scene, "u1", 1)
    assert sorted(scene.take()) == ["a: free t0", "b: free t1", "c: u1 in memory at b"]
    assert [scene.state(key) for key in ("t0", "s")] == ["released", "released"]
    scene.release("u0", "u1")
    assert [scene.state(key) for key in ("t0", "s")] == ["forgotten", "forgotten"]
    assert not scene.machine.state.barriers
    assert not scene.machine.state.shuffles


def test_only_lost_shards_are_made_again_and_outputs_that_are_done_stay(scene: Scene) -> None:
    """b has made u1, and makes u3, when a dies with the shards of t0: that is run again, and in a
    new epoch u0 and u2 follow.  Of u1 nothing is said any more, and u3 goes on."""
    scene.workers("a", "b")
    submit_shuffle(scene, noutputs=4)
    cut(scene, "t0", nbytes=(1,) * 4)
    cut(scene, "t1", nbytes=(1,) * 4)
    assert sorted(scene.take()[2:]) == [
        "a: run u0 #1 (s inline)",
        "a: run u2 #1 (s inline)",
        "b: run u1 #1 (s inline)",
        "b: run u3 #1 (s inline)",
    ]
    join(scene, "u1", 1)
    assert scene.take() == ["c: u1 in memory at b"]
    before = epoch(scene)
    scene.lose("a", expected=True)
    assert scene.take() == ["b: run t0 #2"]
    states = [scene.state(key) for key in ("s", "t0", "t1", "u0", "u1", "u3")]
    assert states == ["waiting", "processing", "memory", "waiting", "memory", "processing"]
    join(scene, "u3", 3)
    assert scene.take() == ["c: u3 in memory at b"]
    cut(scene, "t0", nbytes=(1,) * 4)
    assert scene.take() == ["b: run u0 #2 (s inline)", "b: run u2 #2 (s inline)"]
    assert value_of(scene) == epoch(scene) > before


def test_a_loss_before_the_barrier_was_complete_is_any_loss(scene: Scene) -> None:
    scene.workers("a", "b")
    submit_shuffle(scene)
    cut(scene, "t0")
    scene.lose("a")
    cut(scene, "t1")
    assert scene.take()[2:] == ["b: run t0 #2"]
    cut(scene, "t0")
    assert scene.take() == ["b: run u0 #1 (s inline)", "b: run u1 #1 (s inline)"]


def test_a_copy_of_the_shards_is_as_good_as_they_are(scene: Scene) -> None:
    """b got a copy of t0 before a left: nothing is run again, and b names itself."""
    all_cut(scene)
    scene.holds("b", "t0", nbytes=20)
    scene.take()
    scene.lose("a", expected=True)
    assert scene.state("s") == "memory"
    assert locate(scene, "b") == ["b: answer 200 rows of 2: b has t0 (0), t1 (1)"]


def test_a_worker_is_told_who_has_which_input_partition(scene: Scene) -> None:
    scene.workers("a", "b")
    submit_shuffle(scene, ninputs=3)
    for key in ("t0", "t1", "t2"):
        cut(scene, key)
    assert locate(scene, "a") == ["a: answer 300 rows of 3: a has t0 (0), t2 (2); b has t1 (1)"]


def test_a_worker_that_joins_midway_takes_part_at_once(scene: Scene) -> None:
    scene.workers("a")
    submit_shuffle(scene, noutputs=3)
    for key in ("t0", "t1"):
        cut(scene, key, nbytes=(1, 1, 1))
    scene.take()
    scene.join("b")
    assert any(line.startswith("b: run u") for line in scene.take())


def test_who_asks_in_an_epoch_that_is_over_is_refused(scene: Scene) -> None:
    """While shards are made again, and once they are there in another epoch; and of no shuffle."""
    scene.workers("a", "b", "d")
    submit_shuffle(scene)
    cut(scene, "t0")
    cut(scene, "t1")
    scene.lose("a")
    first = epoch(scene)
    assert locate(scene, "b") == [
        "b: refused ShuffleStale: The shuffle 's' waits for shards that were lost after epoch 1."
    ]
    cut(scene, "t0")
    assert epoch(scene) != first
    assert locate(scene, "b", in_epoch=first) == [
        "b: refused ShuffleStale: The shuffle 's' is in epoch 2, not in 1."
    ]
    assert locate(scene, "b", of="other", in_epoch=1) == [
        "b: refused ShuffleStale: The shuffle 'other' is over, or was never defined."
    ]


def test_shards_that_a_holder_lacks_are_made_again_though_they_are_no_input(scene: Scene) -> None:
    """u0 runs on b, and a has no shards of t0 for it: its replica there counts no more."""
    all_cut(scene)
    scene.take()
    scene.unavailable("u1", "t0", lacking=["a"])
    assert scene.take() == ["b: run t0 #2", "a: free t0"]
    cut(scene, "t0")
    assert scene.take() == ["b: run u1 #2 (s inline)"]


def test_of_several_copies_only_that_of_who_lacks_the_shards_is_dropped(scene: Scene) -> None:
    scene.workers("a", "b", "d")
    submit_shuffle(scene)
    cut(scene, "t0")
    cut(scene, "t1")
    scene.holds("d", "t0", nbytes=20)
    scene.take()
    scene.unavailable("u1", "t0", lacking=["a"])
    assert "a: free t0" in scene.take()
    assert [holder.name for holder in scene.task("t0").who_has or ()] == ["d"]
    assert scene.state("s") == "memory"


def test_a_run_of_an_epoch_that_is_over_does_not_count_as_a_failed_fetch(scene: Scene) -> None:
    """However often shards are lost, nothing was out of reach."""
    all_cut(scene)
    scene.unavailable("u1")
    assert scene.task("u1").nfetch_failures == 0
    assert scene.run("u1", nth=2)


def test_what_a_stale_run_says_it_has_cut_changes_nothing(scene: Scene) -> None:
    """t0 runs anew on b as a was lost; what the first run said comes too late to count."""
    scene.workers("a", "b")
    submit_shuffle(scene, ninputs=1)
    _, task, run = scene.run("t0")
    scene.lose("a")
    cut(scene, "t0", digest=8)
    made = scene.machine.state.shuffles["s"].made[scene.task("t0")]
    assert made.digest == 8
    scene.join("a")
    scene.from_worker("a", ShardsMade(task, run, "s", 0, 100, 9, 20))
    assert made.digest == 8


def test_other_rows_after_outputs_were_made_are_an_error_that_names_the_input(
    scene: Scene,
) -> None:
    """u0 has rows of the first t0.  The second t0 has others, so u1 would not fit to it."""
    all_cut(scene)
    join(scene, "u1", 1)
    scene.take()
    scene.lose("a")
    assert scene.take() == ["b: run t0 #2"]
    cut(scene, "t0", digest=8)
    line = scene.take()[0]
    assert line.startswith("c: u0 erred: P2PConsistencyError: The shuffle 's' is inconsistent: ")
    assert "input partition 0 ('t0') gave different rows" in line
    assert scene.state("u1") == "memory"


def test_other_rows_while_an_output_is_being_made_are_an_error_too(scene: Scene) -> None:
    """u1 may have fetched the shards of the first t0 already."""
    all_cut(scene)
    assert scene.take()[-1] == "b: run u1 #1 (s inline)"
    scene.lose("a")
    cut(scene, "t0", digest=8)
    assert scene.state("s") == "erred"


def test_other_rows_before_any_output_has_begun_do_no_harm(scene: Scene) -> None:
    """There is nothing that they would not fit to."""
    all_cut(scene)
    scene.unavailable("u0", "t1", lacking=["b"], on="a")
    scene.unavailable("u1", "t1", lacking=["b"], on="b")
    scene.lose("b")
    cut(scene, "t1", digest=8)
    assert scene.state("s") == "memory"
    assert scene.state("u0") == "processing"


def test_the_same_rows_made_again_are_no_error(scene: Scene) -> None:
    all_cut(scene)
    join(scene, "u1", 1)
    scene.lose("a")
    cut(scene, "t0")
    join(scene, "u0", 0)
    assert scene.state("u0") == "memory"


def test_cancelled_outputs_let_go_of_the_shards(scene: Scene) -> None:
    all_cut(scene)
    scene.take()
    scene.cancel("u0", "u1")
    assert "a: free t0" in scene.take()
    assert scene.state("s") == "forgotten"


def test_a_client_that_goes_takes_its_shuffles_along(scene: Scene) -> None:
    scene.workers("a")
    submit_shuffle(scene)
    cut(scene, "t0")
    cut(scene, "t1")
    scene.lose_client()
    state = scene.machine.state
    assert not state.barriers
    assert not state.shuffles
    assert scene.state("t0") == "forgotten"


def test_two_clients_share_one_shuffle(scene: Scene) -> None:
    """Both define it; the second finds the barrier of the first, and one of them may go."""
    scene.workers("a", "b")
    submit_shuffle(scene)
    submit_shuffle(scene, client="d")
    assert not any(client.defined for client in scene.machine.state.clients.values())
    cut(scene, "t0")
    cut(scene, "t1")
    scene.lose_client("c")
    assert scene.state("s") == "memory"
    assert scene.state("u0") == "processing"


def test_what_one_client_has_defined_is_there_when_it_submits_though_another_was_first(
    scene: Scene,
) -> None:
    """Both define the same; that of c is over and forgotten before d submits."""
    scene.workers("a")
    define(scene, "s", 1, {"u0": 0}, client="d")
    submit_shuffle(scene, ninputs=1, noutputs=1)
    cut(scene, "t0", nbytes=(1,))
    join(scene, "u0", 0)
    scene.release("u0")
    assert scene.state("s") == "forgotten"
    scene.submit("d", wanted=["u0"], t0=[], s=["t0"], u0=["s"])
    assert scene.task("s") in scene.machine.state.barriers


def test_a_failed_transfer_fails_the_outputs_with_its_own_error(scene: Scene) -> None:
    scene.workers("a", "b")
    submit_shuffle(scene)
    cut(scene, "t0")
    scene.take()
    scene.fail("t1", "KeyError: 'x'")
    assert [line for line in scene.take() if line.startswith("c:")] == [
        "c: u1 erred: KeyError: 'x' (of t1)",
        "c: u0 erred: KeyError: 'x' (of t1)",
    ]


def test_a_barrier_whose_inputs_cut_nothing_fails_and_says_so(scene: Scene) -> None:
    """It was defined as one, and its inputs are plain tasks; they are tried again some times."""
    scene.workers("a")
    define(scene, "s", 1, {"u": 0})
    scene.submit(t=[], s=["t"], u=["s"], wanted=["u"])
    while scene.state("s") == "waiting":
        scene.finish("t")
    assert "'t' was computed for it, and has cut nothing" in scene.take()[-2]
    assert scene.state("u") == "erred"


def test_a_barrier_that_nobody_defined_is_a_task_like_any_other(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(t0=[], t1=[], s=["t0", "t1"], wanted=["s"])
    scene.finish("t0")
    scene.finish("t1")
    assert scene.take()[-1] == "a: run s #1 (t1 from b)"


def test_shards_of_which_nothing_was_heard_are_made_again(scene: Scene) -> None:
    """a cut t0 while it was out of reach, and came back with the result."""
    scene.workers("a", "b")
    submit_shuffle(scene)
    cut(scene, "t1")
    number = scene.number("t0")
    scene.lose("a")
    scene.take()
    scene.join("a", holds={"t0": number})
    said = scene.take()
    assert "a: free t0" in said or "b: free t0" in said
    assert scene.state("s") == "waiting"
    cut(scene, "t0")
    assert scene.state("s") == "memory"


def test_a_restart_ends_shuffles_like_all_else(scene: Scene) -> None:
    scene.join("a", has_nanny=True, pid=1)
    submit_shuffle(scene)
    cut(scene, "t0")
    cut(scene, "t1")
    scene.call(RestartWorkers, workers=None, lets_go=True)
    state = scene.machine.state
    assert not state.tasks
    assert not state.barriers
    assert not state.shuffles


def test_all_shards_are_made_again_if_nobody_has_any_left(scene: Scene) -> None:
    """The last worker goes, and another one comes."""
    scene.workers("a")
    submit_shuffle(scene)
    cut(scene, "t0")
    cut(scene, "t1")
    scene.lose("a", expected=True)
    assert scene.state("s") == "waiting"
    scene.take()
    scene.join("b")
    assert scene.take() == ["b: run t0 #2", "b: run t1 #2"]
    cut(scene, "t0")
    cut(scene, "t1")
    assert scene.state("s") == "memory"


def test_a_shuffle_shows_how_far_it_is_in_bytes_and_partitions(scene: Scene) -> None:
    """By the name under which upstream has its plugin; `u1` gets three times as much as `u0`."""
    scene.workers("a", "b")
    submit_shuffle(scene)
    cut(scene, "t0", nbytes=(10, 30))
    scene.advance(2.0)
    cut(scene, "t1", nbytes=(10, 30))
    join(scene, "u0", 0, nbytes=20)
    shown = extensions_of(scene.machine.state)["shuffle"]
    assert shown.shuffle_ids() == set(shown.active_shuffles) == {"s"}
    assert shown.heartbeats["s"] == {
        "kind": "table",
        "barrier": "memory",
        "epoch": 1,
        "epochs": 1,
        "input_partitions": 2,
        "input_partitions_made": 2,
        "output_partitions": 2,
        "outputs_joined": 1,
        "made": 80,
        "on_disk": 0,
        "joined": 20,
        "per_second": 50.0,
        "skew": 1.5,
    }


def test_bytes_by_output_of_another_number_are_refused(scene: Scene) -> None:
    """The two ends are of different versions."""
    scene.workers("a")
    submit_shuffle(scene, noutputs=3)
    with pytest.raises(ProtocolError, match="not as many output partitions"):
        cut(scene, "t0", nbytes=(1, 2))


def test_a_large_output_waits_for_a_worker_with_room_for_it(scene: Scene) -> None:
    """u0 and u1 have nearly all rows: joining one takes 2 of the 3.2 GiB, so they take turns."""
    scene.join("a", nthreads=4, memory_limit=4 * GIB)
    submit_shuffle(scene, noutputs=3)
    for key in ("t0", "t1"):
        while scene.state(key) != "processing":
            scene.advance(1.0)
        cut(scene, key, nbytes=(GIB // 2, GIB // 2, 1))
    assert scene.task("u0").options.memory == 2 * GIB
    assert scene.task("u2").options.memory == 4
    assert scene.state("u0") == "processing"
    assert scene.state("u1") == "queued"
    join(scene, "u0", 0)
    assert scene.state("u1") == "processing"


def test_small_outputs_pass_a_large_one_for_a_while_and_then_wait_for_it(scene: Scene) -> None:
    """While u0 is joined there is room for u2 and u3, and none for u1, which goes before them.

    They have the same name, so that they would wait behind it.  After a second nothing that takes
    much goes before u1 any more: it has its turn even if small ones never ended.
    """
    scene.join("a", nthreads=4, memory_limit=4 * GIB)
    submit_shuffle(scene, noutputs=40)
    sizes = (GIB // 2, GIB // 2, *[64 << 20] * 38)
    for key in ("t0", "t1"):
        while scene.state(key) != "processing":
            scene.advance(1.0)
        cut(scene, key, nbytes=sizes)
    small = [f"u{i}" for i in range(2, 40)]
    assert [scene.state(key) for key in ("u0", "u1")] == ["processing", "queued"]
    begun = [key for key in small if scene.state(key) == "processing"]
    assert begun
    join(scene, begun[0], int(begun[0][1:]))
    scene.advance(2.0)
    begun = [key for key in small if scene.state(key) == "processing"]
    for key in begun:
        join(scene, key, int(key[1:]))
    assert not [key for key in small if scene.state(key) == "processing"]
    join(scene, "u0", 0)
    assert scene.state("u1") == "processing"
    assert [key for key in small if scene.state(key) == "processing"]


def test_an_output_larger_than_any_worker_fails_with_numbers(scene: Scene) -> None:
    scene.join("a", memory_limit=GIB)
    submit_shuffle(scene)
    for key in ("t0", "t1"):
        cut(scene, key, nbytes=(GIB, 1))
    [line] = [line for line in scene.take() if "erred" in line]
    assert line.startswith("c: u0 erred: OutputTooLarge: Task 'u0' is to make output partition 0")
    assert "of 2.00 GiB, and no worker has more than 1.00 GiB" in line
    assert scene.state("u1") == "processing"


def test_what_a_user_said_of_memory_is_believed(scene: Scene) -> None:
    scene.join("a", nthreads=2, memory_limit=4 * GIB)
    define(scene, "s", 1, {"u0": 0, "u1": 1})
    scene.submit(t0=[], s=["t0"], wanted=["s"])
    scene.submit(u0=["s"], u1=["s"], options=TaskOptions(memory=5))
    cut(scene, "t0", nbytes=(GIB, GIB))
    assert scene.task("u0").options.memory == 5


def test_a_join_of_two_shuffles_takes_what_both_have_for_it(scene: Scene) -> None:
    """u joins output 0 of both: half a GiB of one and as much of the other."""
    scene.join("a", nthreads=2, memory_limit=4 * GIB)
    define(scene, "left", 1, {"u": 0})
    define(scene, "right", 1, {"u": 0})
    scene.submit(l0=[], left=["l0"], r0=[], right=["r0"], u=["left", "right"], wanted=["u"])
    cut(scene, "l0", of="left", nbytes=(GIB // 2,))
    cut(scene, "r0", of="right", nbytes=(GIB // 2,))
    assert scene.task("u").options.memory == 2 * GIB
    assert scene.take()[-1] == "a: run u #1 (left inline, right inline)"


def test_many_small_outputs_are_spread_over_the_workers(scene: Scene) -> None:
    scene.workers("a", "b", "d")
    submit_shuffle(scene, ninputs=1, noutputs=30)
    cut(scene, "t0", nbytes=(1,) * 30)
    for _ in range(30):
        running = [key for key in map("u{}".format, range(30)) if scene.state(key) == "processing"]
        sent = [key for key in running if scene.task(key).run]
        if not sent:
            break
        scene.finish(sent[0])
    held = [len(scene.worker(name).has_what) for name in ("a", "b", "d")]
    assert min(held) >= 5
