"""Stacks counted in trees."""

import sys
import threading
from types import FrameType

from shoal.compat import profiling


def frame_of_inner() -> FrameType:
    return sys._getframe()


def test_a_stack_is_a_way_through_the_tree() -> None:
    tree = profiling.create()
    frame = frame_of_inner()
    node = profiling.process(frame, None, tree)
    profiling.process(sys._getframe(), None, tree)
    assert tree["count"] == 2
    assert node is not None
    assert node["identifier"] == profiling.identifier(frame)
    assert node["count"] == 1
    assert node["description"]["name"] == "frame_of_inner"
    assert "in frame_of_inner" in profiling.call_stack(frame)[-1]
    both = profiling.merge(tree, tree, profiling.create())
    assert both["count"] == 4
    assert tree["count"] == 2


def test_a_stack_may_be_cut_or_left_out() -> None:
    tree = profiling.create()
    assert profiling.process(sys._getframe(), None, tree, omit=["test_profiling"]) is None
    assert tree == profiling.create() == profiling.merge()
    node = profiling.process(frame_of_inner(), None, tree, stop="python.py")
    assert node is not None
    depth, inner = 0, tree
    while inner["children"]:
        (inner,) = inner["children"].values()
        depth += 1
    assert inner is node
    assert depth < len(profiling.call_stack(frame_of_inner()))


def test_a_thread_is_watched_until_it_ends() -> None:
    go_on, watching = threading.Event(), threading.Event()
    logs = []

    def work() -> None:
        logs.append(profiling.watch(interval="1ms", cycle="1ms"))
        watching.set()
        go_on.wait()

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    watching.wait()
    (sampling,) = [each for each in threading.enumerate() if each.name == "shoal-profile"]
    go_on.set()
    thread.join()
    sampling.join(5)
    assert not sampling.is_alive()
    assert logs[0]
