"""A pool whose functions leave it and come back, and the same words outside of any."""

import threading
from concurrent.futures import BrokenExecutor, wait

import pytest

from shoal.compat.seceding import ThreadPoolExecutor, rejoin, secede
from shoal.observe.errors import NotInTask


def test_outside_of_tasks_and_pools_there_is_nothing_to_secede_from() -> None:
    with pytest.raises(NotInTask, match=r"No worker found: secede\(\).*was submitted"):
        secede()
    with pytest.raises(ValueError, match=r"rejoin\(\) is for code that runs in a task"):
        rejoin()


def test_what_has_seceded_leaves_its_place_to_another_thread() -> None:
    may_end = threading.Event()

    def leave() -> str:
        secede()
        assert may_end.wait(5)
        return threading.current_thread().name

    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        left = pool.submit(leave)
        other = pool.submit(lambda: threading.current_thread().name)
        assert other.result(5) == "pool-1"
        may_end.set()
        assert left.result(5) == "pool-0"
        assert [thread.name for thread in pool._threads] == ["pool-1"]


def test_who_comes_back_has_the_next_place_before_what_was_submitted_earlier() -> None:
    order: list[str] = []
    has_left, is_busy, may_end = threading.Event(), threading.Event(), threading.Event()

    def come_back() -> None:
        secede()
        has_left.set()
        assert is_busy.wait(5)
        threading.Timer(0.05, may_end.set).start()
        rejoin()
        assert threading.current_thread() in pool._threads
        rejoin()
        order.append("back")

    def keep_busy() -> None:
        is_busy.set()
        assert may_end.wait(5)

    with ThreadPoolExecutor(1) as pool:
        futures = [pool.submit(come_back)]
        assert has_left.wait(5)
        futures += [pool.submit(keep_busy), pool.submit(order.append, "next")]
        assert not wait(futures, 5).not_done
        for future in futures:
            future.result()
        assert order == ["back", "next"]
        assert len(pool._threads) == 1


def test_nobody_waits_for_a_place_in_a_pool_that_is_shut_down() -> None:
    has_left, is_shut = threading.Event(), threading.Event()

    def come_back_late() -> str:
        secede()
        has_left.set()
        assert is_shut.wait(5)
        rejoin()
        return "went on"

    pool = ThreadPoolExecutor(1)
    late = pool.submit(come_back_late)
    assert has_left.wait(5)
    pool.shutdown(wait=False)
    is_shut.set()
    assert late.result(5) == "went on"
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(int)


def test_what_is_cancelled_or_raises_is_so_in_its_future() -> None:
    may_go_on = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(may_go_on.wait, 5)
        waiting, failing = pool.submit(int), pool.submit(int, "x")
        assert waiting.cancel()
        may_go_on.set()
        with pytest.raises(ValueError, match="invalid literal"):
            failing.result(5)
        assert list(pool.map(abs, [-1, 2])) == [1, 2]


def test_what_was_submitted_is_called_though_a_thread_was_told_to_go_before_it() -> None:
    """The second thread is busy when the first comes back, so it is told to go and goes unasked."""
    has_left, is_busy, comes_back, may_go_on, may_end = [threading.Event() for _ in range(5)]

    def come_back() -> None:
        secede()
        has_left.set()
        assert is_busy.wait(5)
        comes_back.set()
        rejoin()
        assert may_end.wait(5)

    def keep_busy() -> None:
        is_busy.set()
        assert comes_back.wait(5)
        assert may_go_on.wait(5)

    pool = ThreadPoolExecutor(1)
    first = pool.submit(come_back)
    assert has_left.wait(5)
    busy = pool.submit(keep_busy)
    assert comes_back.wait(5)
    threading.Timer(0.05, may_go_on.set).start()
    busy.result(5)
    last = pool.submit(int)
    pool.shutdown(wait=False)
    may_end.set()
    first.result(5)
    assert last.result(5) == 0


def test_nobody_waits_for_a_pool_whose_initializer_raises() -> None:
    pool = ThreadPoolExecutor(1, initializer=int, initargs=("x",))
    with pytest.raises(BrokenExecutor, match="initializer of the pool raised ValueError"):
        pool.submit(int).result(5)
    with pytest.raises(BrokenExecutor):
        pool.submit(int)
    pool.shutdown()


def test_what_leaves_a_pool_that_is_shut_down_has_no_substitute() -> None:
    is_shut = threading.Event()

    def leave_and_come_back() -> int:
        assert is_shut.wait(5)
        secede()
        nthreads = sum(t.name.startswith("leaving") for t in threading.enumerate())
        rejoin()
        return nthreads

    pool = ThreadPoolExecutor(1, "leaving")
    future = pool.submit(leave_and_come_back)
    pool.shutdown(wait=False)
    is_shut.set()
    assert future.result(5) == 1
