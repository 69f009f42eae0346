"""A client loses its scheduler, and tells another that knows nothing what it lives on."""

import msgspec
import pytest

from shoal.client.machine import ERROR, FINISHED, LOST, PENDING
from shoal.client.machine.lineage import TASKS_IDLE, TASKS_MIN, Lineage
from shoal.ids import ClientTaskId, Key
from shoal.protocol.actors import PromiseValue
from shoal.protocol.detached import DetachTasks
from shoal.protocol.messages import Message, SubmitTasks, TaskOptions
from shoal.protocol.questions import WhoHas
from shoal.protocol.shuffles import DefineShuffles, ShuffleDefinition
from shoal.protocol.topics import SubscribeTopics
from tests.scenes.client.scene import Scene, line
from tests.scenes.client.test_slices import slice_of


@pytest.fixture
def scene() -> Scene:
    return Scene(returns=True)


def marked(message) -> str:
    """As `line`; `w` is wanted, `h` is held, and what is let go of stands at the end."""
    if not isinstance(message, SubmitTasks):
        return line(message)
    parts = []
    for i, key in enumerate(message.keys):
        wanted = message.wanted is None or i in message.wanted
        marks = ("w" if wanted else "") + ("h" if i in message.held else "")
        needs = message.dependencies[i] if message.dependencies else []
        after = f"({' '.join(map(str, needs))})" if needs else ""
        parts.append(f"{key}#{message.first + i}{after}{marks and '.' + marks}")
    if message.let_go:
        parts.append(f"let go of {' '.join(map(str, message.let_go))}")
    return " ".join(parts)


def said_again(scene: Scene) -> list[str]:
    scene.find_scheduler()
    return [marked(message) for message in scene.machine.take_outgoing()]


def test_what_is_wanted_is_said_again_under_its_numbers_with_the_code_that_it_needs(scene):
    x, y = scene.submit("x", "y")
    scene.submit("z", needs=[x], function="g")
    scene.take()
    scene.release(y)
    scene.take()

    scene.lose_scheduler()
    assert said_again(scene) == ["code 1 is f", "x#1.w", "code 2 is g", "z#3(1).w"]
    assert said_again_later(scene) == []


def said_again_later(scene: Scene) -> list[str]:
    return [marked(message) for message in scene.machine.take_outgoing()]


def test_what_only_others_need_is_held_until_they_were_said(scene):
    [x] = scene.submit("x")
    [y] = scene.submit("y", needs=[x])
    scene.take()
    scene.submit("z", needs=[y])
    scene.take()
    scene.release(x, y)
    scene.take()

    scene.lose_scheduler()
    assert said_again(scene) == [
        "code 1 is f",
        "x#1 y#2(1).h",
        "z#3(2).w",
        "let go of 2",
    ]


def test_what_is_pending_stays_so_and_what_has_finished_is_found_again(scene):
    [x] = scene.submit("x")
    [large] = scene.submit("large")
    [small] = scene.submit("small")
    scene.take()
    scene.finish(large.number, value=None, holders=["tcp://a:1", "tcp://b:1"])
    scene.finish(small.number)
    scene.ended()

    assert scene.lose_scheduler() == ["tcp://a:1", "tcp://b:1"]
    assert [record.status for record in (x, large, small)] == [PENDING, FINISHED, FINISHED]
    assert scene.ended() == []
    assert not large.holders
    assert large.number in scene.machine.astray

    assert said_again(scene) == ["code 1 is f", "x#1.w large#2.w small#3.w"]
    scene.finish(large.number, value=None, holders=["tcp://b:1"])
    assert scene.ended() == ["large: finished"]  # for whoever waits until it is found
    assert not scene.machine.astray
    assert large.holders == ["tcp://b:1"]
    scene.finish(small.number)
    assert scene.ended() == []


def test_a_finished_result_that_nobody_has_any_more_is_waited_for(scene):
    x, y = scene.submit("x", "y")
    scene.take()
    scene.finish(1, value=None, holders=["tcp://a:1"])
    scene.finish(2, value=None, holders=["tcp://a:1"])
    scene.ended()
    scene.lose_scheduler()
    said_again(scene)
    scene.lose(1)
    assert x.status == LOST
    assert scene.ended() == ["x: lost"]  # whoever looks for it goes on to wait for it
    scene.err(2)
    assert y.status == ERROR
    assert not scene.machine.astray


def test_errors_stay_until_they_are_tried_again(scene):
    [x] = scene.submit("x")
    [y] = scene.submit("y", needs=[x])
    scene.take()
    scene.err(1, origin="x")
    scene.err(2, origin="x")
    scene.ended()

    scene.lose_scheduler()
    assert said_again(scene) == []
    assert (x.status, y.status) == (ERROR, ERROR)

    scene.retry(y)
    assert [marked(m) for m in scene.machine.take_outgoing()] == [
        "code 1 is f",
        "x#1.w y#2(1).w",
        "forget code 1",
    ]
    assert (x.status, y.status) == (PENDING, PENDING)
    scene.retry(y)
    assert scene.take() == []


def test_a_failed_task_is_said_again_as_soon_as_another_needs_it(scene):
    x, z = scene.submit("x", "z")
    scene.take()
    scene.err(1)
    scene.lose_scheduler()
    assert said_again(scene) == ["code 1 is f", "z#2.w"]
    scene.submit("y", needs=[x, z])
    assert said_again_later(scene) == ["x#1.w", "y#3(1 2).w"]


def test_an_error_among_what_is_needed_is_held_and_stays_an_error(scene):
    """y was made before x was lost and failed."""
    [x] = scene.submit("x")
    scene.take()
    scene.submit("y", needs=[x])
    scene.take()
    scene.finish(2)
    scene.err(1)
    scene.lose_scheduler()
    assert said_again(scene) == ["code 1 is f", "x#1.h", "y#2(1).w", "let go of 1"]
    scene.submit("z", needs=[x])
    assert said_again_later(scene) == ["x#1.w", "z#3(1).w"]


def test_a_function_that_nobody_needs_is_said_when_it_is_used_again(scene):
    [x] = scene.submit("x")
    scene.take()
    scene.release(x)
    scene.lose_scheduler()
    assert said_again(scene) == []
    scene.submit("y")
    assert said_again_later(scene) == ["code 2 is f", "y#2.w"]


def test_a_bundle_is_said_again_and_forgotten_again(scene):
    first = scene.machine.reserve(2)
    code = scene.machine.new_code()
    message = slice_of(first, ["a", "b"], [1])
    [b] = scene.machine.submit_slice([(code, b"bundle")], message_of(message, code), ["b"])
    scene.take()
    scene.lose_scheduler()
    assert said_again(scene) == ["code 1 is bundle", "b#2.w", "forget code 1"]
    scene.release(b)
    scene.take()
    scene.lose_scheduler()
    assert said_again(scene) == []


def message_of(message: SubmitTasks, code: int) -> SubmitTasks:
    return msgspec.structs.replace(message, codes=[code])


def test_what_is_done_meanwhile_is_said_after_all_that_lives(scene):
    [x] = scene.submit("x")
    scene.take()
    scene.lose_scheduler()
    [y] = scene.submit("y", needs=[x])
    scene.want("elsewhere")
    scene.machine.say(SubscribeTopics(["t"]))
    scene.machine.say(WhoHas(5))  # asked just before the loss, as far as the machine knows
    scene.release(y)
    assert said_again(scene) == [
        "code 1 is f",
        "x#1.w",
        "want elsewhere #3",
        "SubscribeTopics",
        "WhoHas",
    ]


def test_calls_that_were_not_sent_yet_are_not_sent_to_another_scheduler(scene):
    scene.machine.say(WhoHas(5))
    scene.machine.say(SubscribeTopics(["t"]))
    scene.lose_scheduler()
    assert said_again(scene) == ["SubscribeTopics"]


def test_what_was_cancelled_is_said_again_and_cancelled_unless_that_was_confirmed(scene):
    """Or what depends on it would go on."""
    x, z = scene.submit("x", "z")
    [y] = scene.submit("y", needs=[x])
    scene.take()
    scene.cancel(x, reason="no")
    scene.take()
    scene.lose_scheduler()
    scene.cancel(z)
    assert said_again(scene) == [
        "code 1 is f",
        "x#1.w z#2.w y#3(1).w",
        "cancel 1 (no)",
        "cancel 2",
    ]
    scene.drop(1)
    scene.drop(2)
    scene.drop(3)
    assert y.status == "cancelled"
    scene.lose_scheduler()
    assert said_again(scene) == []


def test_work_that_was_detached_meanwhile_is_not_forgotten_though_nobody_waits(scene):
    [x] = scene.submit("x")
    scene.take()
    scene.machine.say(DetachTasks([x.number]))
    scene.take()
    scene.lose_scheduler()
    [y] = scene.submit("y")
    scene.machine.say(DetachTasks([y.number]))
    scene.release(y)
    assert said_again(scene) == ["code 1 is f", "x#1.w", "y#2.w", "detach 1 2", "release 2"]


def test_values_that_were_scattered_are_wanted_by_their_keys(scene):
    """And one that is on its way is brought by whoever brings it."""
    [here, coming], _ = scene.machine.want_scattered([Key("here"), Key("coming")])
    scene.finish(here.number, value=None, holders=["tcp://a:1"])
    scene.submit("y", needs=[here])
    scene.take()
    scene.release(here)
    scene.take()
    scene.lose_scheduler()
    assert said_again(scene) == ["want here #1", "code 1 is f", "y#3(1).w", "release 1"]
    assert coming.status == PENDING


def test_an_actor_that_was_made_is_wanted_by_its_key_and_never_made_anew(scene):
    """What it knows would be lost without a word."""
    options = TaskOptions(actor=True)
    made, new, dropped = scene.submit("made", "new", "dropped", options=options)
    scene.take()
    scene.finish(made.number)
    scene.finish(dropped.number)
    scene.submit("y", needs=[dropped])
    scene.take()
    scene.release(dropped)
    scene.take()
    scene.lose_scheduler()
    assert said_again(scene) == [
        "want made #1",
        "code 1 is f",
        "new#2.w",
        "want dropped #3",
        "y#4(3).w",
        "release 3",
    ]
    assert new.status == PENDING


def test_what_was_said_together_with_an_actor_is_found_though_it_is_said_apart(scene):
    [x] = scene.submit("x")
    [actor] = scene.submit("actor", options=TaskOptions(actor=True))
    scene.submit("y", needs=[x, actor])
    whole = together(scene.machine.take_outgoing())
    scene.release(x)
    scene.take()
    scene.finish(actor.number)
    lineage = Lineage()
    for message in whole:
        lineage.keep(message)
    again = lineage.again(scene.machine.by_number, [], placed=lambda number: number == actor.number)
    assert [marked(message) for message in again] == [
        "code 1 is f",
        "x#1.h",
        "want actor #2",
        "y#3(1 2).w",
        "let go of 1",
        "forget code 1",
    ]


def together(messages) -> list[Message]:
    """As one slice of a graph has them."""
    code, *parts = messages
    columns = {
        "keys": [key for part in parts for key in part.keys],
        "arguments": [argument for part in parts for argument in part.arguments],
        "dependencies": [[], [], parts[-1].dependencies[0]],
        "options": None,
        "other_options": [TaskOptions(actor=True)],
        "option_indices": [0, 1, 0],
    }
    return [code, msgspec.structs.replace(parts[0], **columns)]


def test_what_failed_before_needs_not_be_cancelled_where_nobody_knows_it(scene):
    [x] = scene.submit("x")
    scene.take()
    scene.err(1)
    scene.lose_scheduler()
    said_again(scene)
    scene.cancel(x)
    assert scene.take() == []
    assert not scene.machine.lineage.cancelled


def test_a_cancellation_that_nobody_confirms_is_not_kept_for_ever(scene):
    [x] = scene.submit("x")
    scene.take()
    scene.cancel(x)
    scene.take()
    lineage = scene.machine.lineage
    lineage.sweep({}, [])
    assert list(lineage.cancelled) == [1]
    lineage.sweep({}, [])
    lineage.sweep({}, [])
    assert not lineage.cancelled
    assert not list(lineage.covers())


def test_a_value_that_was_promised_is_promised_again_unless_it_is_there(scene):
    records = []
    for key in ("a", "b"):
        [record], _ = scene.machine.want_scattered([Key(key)])
        scene.machine.say(PromiseValue(record.number, Key(key)))
        records.append(record)
    scene.take()
    scene.finish(records[0].number, value=None, holders=["tcp://a:1"])
    scene.lose_scheduler()
    assert said_again(scene) == ["want a #1", "PromiseValue"]


def test_slices_that_come_later_find_what_they_refer_to(scene):
    """The graph was not said to its end, so that nobody knows what the rest of it needs."""
    first = scene.machine.reserve(3)
    code = scene.machine.new_code()
    begun = sliced(first, ["a", "b"], code, graph=first, ahead=1, held=[0])
    scene.machine.submit_slice([(code, b"bundle")], begun, [])
    scene.take()
    scene.lose_scheduler()
    assert said_again(scene) == ["code 1 is bundle", "a#1.h b#2", "forget code 1"]

    last = sliced(
        first + 2, ["c"], code + 1, graph=first, needs=[[first]], wanted=[0], let_go=[first]
    )
    [c] = scene.machine.submit_slice([(scene.machine.new_code(), b"more")], last, ["c"])
    assert said_again_later(scene) == [
        "code 2 is more",
        "c#3(1).w let go of 1",
        "forget code 2",
    ]
    scene.lose_scheduler()
    assert said_again(scene) == [
        "code 1 is bundle",
        "a#1.h",
        "code 2 is more",
        "c#3(1).w",
        "let go of 1",
        "forget code 1 2",
    ]
    assert c.status == PENDING


def sliced(first, keys, code, *, graph, ahead=0, needs=(), wanted=(), held=(), let_go=()):
    return SubmitTasks(
        first=ClientTaskId(first),
        keys=[Key(key) for key in keys],
        codes=[code],
        arguments=list(range(len(keys))),
        dependencies=list(needs),
        prefixes=["p"],
        prefix_indices=[],
        wanted=list(wanted),
        held=list(held),
        let_go=list(let_go),
        graph=graph,
        ntasks_ahead=ahead,
    )


def test_a_shuffle_is_defined_again_for_as_long_as_its_barrier_is_needed(scene):
    scene.machine.say(DefineShuffles([ShuffleDefinition("s", Key("barrier"), 1, 1)]))
    scene.take()
    scene.lose_scheduler()
    assert said_again(scene) == ["DefineShuffles"]  # its tasks may be about to come
    [barrier] = scene.submit("barrier")
    scene.take()
    scene.lose_scheduler()
    assert said_again(scene) == ["DefineShuffles", "code 1 is f", "barrier#1.w"]
    scene.release(barrier)
    scene.take()
    scene.lose_scheduler()
    assert said_again(scene) == []


def test_a_greeting_comes_first(scene):
    machine = scene.machine
    machine.may_return(lambda: [SubscribeTopics(["t"])])
    scene.submit("x")
    scene.take()
    scene.lose_scheduler()
    assert said_again(scene) == ["SubscribeTopics", "code 1 is f", "x#1.w"]


def test_a_scheduler_that_is_lost_at_once_again_makes_no_difference(scene):
    scene.submit("x")
    scene.take()
    scene.lose_scheduler()
    scene.find_scheduler()
    scene.lose_scheduler()
    assert said_again(scene) == ["code 1 is f", "x#1.w"]


def test_a_client_without_a_way_back_keeps_nothing():
    scene = Scene()
    scene.submit("x")
    scene.take()
    assert scene.machine.lineage is None


def test_what_nobody_needs_is_let_go_of_as_time_goes_by(scene):
    """A pipeline: each message has a task that needs one of the message before, which has ended."""
    kept = []
    [previous] = scene.submit("first")
    machine = scene.machine
    for i in range(3 * TASKS_MIN // 10):
        loaded = scene.submit(*[f"load-{i}-{j}" for j in range(9)])
        [used] = scene.submit(f"use-{i}", needs=[previous])
        machine.take_outgoing()
        scene.release(previous, used, *loaded[:-1])
        previous = loaded[-1]
        machine.take_outgoing()
        kept.append(len(machine.lineage))
    assert max(kept) <= 2 * TASKS_MIN
    scene.lose_scheduler()
    assert said_again(scene)[1:] == [f"{previous.key}#{previous.number}.w"]


def test_bytes_that_nobody_needs_are_let_go_of(scene):
    machine = scene.machine
    for i in range(40):
        [record] = machine.submit((b"f", b"f"), "f", [Key(f"x{i}")], [b"." * 2**20])
        machine.take_outgoing()
        scene.release(record)
        machine.take_outgoing()
    assert machine.lineage.nbytes <= 18 * 2**20


def test_once_nothing_is_wanted_hardly_anything_is_kept(scene):
    machine = scene.machine
    [record] = machine.submit((b"f", b"f"), "f", [Key("x")], [b"." * 2**21])
    many = scene.submit(*[f"y{i}" for i in range(2 * TASKS_IDLE)])
    machine.take_outgoing()
    assert len(machine.lineage) == 1 + 2 * TASKS_IDLE
    scene.release(record, *many)
    machine.take_outgoing()
    assert len(machine.lineage) == 0
    assert machine.lineage.nbytes < 2**21
