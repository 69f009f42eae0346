"""What a client says as its user makes futures, drops them, and makes them again."""

from shoal.client.machine.outgoing import BATCH_TASKS_MAX
from shoal.protocol.messages import Failure, TaskOptions
from tests.scenes.client.scene import Scene


def test_a_function_is_said_once_and_neighbours_share_a_message(scene):
    scene.submit("x")
    scene.submit("y", "z")
    assert scene.take() == ["code 1 is f", "submit x#1(code 1) y#2(code 1) z#3(code 1)"]

    scene.submit("w")
    assert scene.take() == ["submit w#4(code 1)"]


def test_a_key_that_is_wanted_already_is_not_said_again(scene):
    [first] = scene.submit("x")
    scene.take()

    [second] = scene.submit("x")
    assert second is first
    assert scene.take() == []

    scene.release(first)
    assert scene.take() == []  # the other future still wants it
    scene.release(second)
    assert scene.take() == ["release 1"]


def test_a_key_released_and_wanted_again_gets_a_new_number_after_the_release(scene):
    """The key may stand for another value now, so the scheduler must hear the release first."""
    [x] = scene.submit("x")
    scene.take()

    scene.release(x)
    scene.submit("x", function="g")
    assert scene.take() == ["code 2 is g", "release 1", "submit x#2(code 2)"]

    scene.finish(1)  # an answer to the old want, which was under way
    assert scene.ended() == []
    scene.finish(2)
    assert scene.ended() == ["x: finished"]


def test_a_release_does_not_overtake_the_submission_that_it_follows(scene):
    [x] = scene.submit("x")
    scene.release(x)
    scene.submit("y")
    assert scene.take() == ["code 1 is f", "submit x#1(code 1)", "release 1", "submit y#2(code 1)"]


def test_inputs_are_said_by_number(scene):
    x, y = scene.submit("x", "y")
    scene.submit("z", needs=[x, y])
    assert scene.take() == [
        "code 1 is f",
        "submit x#1(code 1) y#2(code 1) z#3(code 1; 1 2)",
    ]


def test_tasks_with_other_options_go_into_another_message(scene):
    scene.submit("x")
    scene.submit("y", options=TaskOptions(priority=1))
    scene.submit("z", options=TaskOptions(priority=1))
    assert scene.take() == [
        "code 1 is f",
        "submit x#1(code 1)",
        "submit y#2(code 1) z#3(code 1)",
    ]


def test_a_task_that_needs_a_cancelled_result_is_cancelled_without_being_sent(scene):
    [x] = scene.submit("x")
    scene.take()
    scene.cancel(x)
    assert scene.take() == ["cancel 1"]
    assert scene.ended() == ["x: cancelled"]

    [y] = scene.submit("y", needs=[x])
    assert scene.take() == []
    assert scene.ended() == ["y: cancelled"]
    assert y.reason == "lost dependencies"
    scene.release(y)
    assert scene.take() == []  # the scheduler never heard of it


def test_a_cancelled_key_can_be_wanted_again(scene):
    [x] = scene.submit("x")
    scene.cancel(x, reason="enough")
    [again] = scene.submit("x")
    assert scene.take() == [
        "code 1 is f",
        "submit x#1(code 1)",
        "cancel 1 (enough)",
        "submit x#2(code 1)",
    ]
    scene.release(x)
    assert scene.take() == []  # a cancelled want is over
    scene.finish(2)
    assert again.status == "finished"
    assert x.status == "cancelled"


def test_a_small_result_outlives_its_holders(scene):
    [x] = scene.submit("x")
    scene.finish(1, value=b"v", holders=["a"])
    assert scene.ended() == ["x: finished"]
    scene.lose(1)
    assert x.status == "finished"
    assert scene.ended() == []


def test_an_error_is_not_lost_with_whatever_came_before_it(scene):
    (record,) = scene.submit("a")
    scene.err(1)
    scene.lose(1)
    assert (record.status, record.failure is None) == ("error", False)


def test_a_large_result_that_is_lost_ends_a_second_time(scene):
    [x] = scene.submit("x")
    scene.finish(1, value=None, holders=["a"])
    assert scene.ended() == ["x: finished"]

    scene.lose(1)
    assert (x.status, x.holders) == ("lost", [])
    scene.finish(1, value=None, holders=["b"])
    assert scene.ended() == ["x: finished"]
    assert x.holders == ["b"]


def test_news_of_holders_wakes_nobody(scene):
    [x] = scene.submit("x")
    scene.finish(1, value=None, holders=["a"])
    scene.ended()
    scene.finish(1, value=None, holders=["a", "b"])
    assert scene.ended() == []
    assert x.holders == ["a", "b"]


def test_an_error_is_kept_for_every_future_of_the_key(scene):
    [x] = scene.submit("x")
    scene.err(1)
    assert scene.ended() == ["x: error"]
    [again] = scene.submit("x")
    assert again is x


def test_what_the_scheduler_cancels_is_not_released_to_it(scene):
    [x] = scene.submit("x")
    scene.take()
    scene.drop(1, reason="lost dependencies")
    assert (x.status, x.reason) == ("cancelled", "lost dependencies")
    scene.release(x)
    assert scene.take() == []


def test_answers_to_wants_that_are_gone_change_nothing(scene):
    [x] = scene.submit("x")
    scene.release(x)
    scene.finish(1)
    scene.err(1)
    scene.lose(1)
    scene.drop(1)
    assert scene.ended() == []
    assert x.status == "pending"


def test_a_key_known_by_name_only_is_wanted_by_name(scene):
    x = scene.want("x")
    assert scene.want("x") is x
    assert scene.take() == ["want x #1"]


def test_a_lost_connection_ends_everything_but_what_is_here(scene):
    small, large, failed, pending = scene.submit("small", "large", "failed", "pending")
    scene.finish(1)
    scene.finish(2, value=None, holders=["a"])
    scene.err(3)
    scene.ended()

    scene.machine.connection_lost()
    assert scene.ended() == ["large: cancelled", "pending: cancelled"]
    assert (large.reason, pending.reason) == ("scheduler-connection-lost",) * 2
    assert (small.status, failed.status) == ("finished", "error")
    assert scene.take() == []  # there is nobody to say it to


def test_only_so_many_functions_are_kept_and_the_oldest_goes():
    scene = Scene(functions_max=2)
    scene.submit("a", function="f")
    scene.submit("b", function="g")
    scene.submit("c", function="f")  # f is the younger one now
    scene.take()

    scene.submit("d", function="h")
    assert scene.take() == ["code 3 is h", "forget code 2", "submit d#4(code 3)"]
    scene.submit("e", function="g")
    assert scene.take() == ["code 4 is g", "forget code 1", "submit e#5(code 4)"]


def test_a_large_map_is_several_messages(scene):
    ntasks = BATCH_TASKS_MAX + 1
    scene.submit(*(f"k{i}" for i in range(ntasks)))
    _code, first, second = scene.machine.take_outgoing()
    assert len(first.keys) == BATCH_TASKS_MAX
    assert second.keys == [f"k{ntasks - 1}"]
    assert second.first == ntasks


def test_scattered_keys_get_consecutive_numbers_and_known_ones_none(scene):
    [x] = scene.submit("x")
    records, new = scene.machine.want_scattered(["a", "x", "b"])
    assert [record.key for record in records] == ["a", "x", "b"]
    assert [record.number for record in new] == [2, 3]
    assert x.nfutures == 2
    scene.look()


def test_what_failed_is_pending_as_soon_as_it_is_tried_again(scene):
    x, y = scene.submit("x", "y")
    scene.err(1)
    scene.finish(2)
    scene.take()
    scene.ended()
    scene.retry(x, y)
    assert scene.take() == ["retry 1"]
    assert [x.status, y.status] == ["pending", "finished"]
    scene.retried(1)
    scene.finish(1)
    assert scene.ended() == ["x: finished"]


def test_so_is_what_it_failed_with(scene):
    [x] = scene.submit("x")
    [y] = scene.submit("y", needs=[x])
    scene.err(1, origin="x")
    scene.err(2, origin="x")
    scene.take()
    scene.retry(y)
    assert scene.take() == ["retry 2 1"]
    assert [x.status, y.status] == ["pending", "pending"]


def test_what_somebody_else_has_tried_again_is_pending_too(scene):
    [x] = scene.submit("x")
    scene.err(1)
    scene.retried(1)
    assert x.status == "pending"
    scene.retried(7)  # of a want that is gone


def test_a_failure_that_the_scheduler_does_not_know_of_stays(scene):
    [x] = scene.submit("x")
    scene.take()
    scene.machine.fail(x, Failure(b"", "TypeError: no"))
    scene.take()
    scene.retry(x)
    assert scene.take() == []
    assert x.status == "error"
