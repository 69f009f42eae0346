"""What is known of names that users chose for calls."""

import sys
import threading

import pytest

from shoal.client.machine import Record
from shoal.client.naming import HASHED_NBYTES, REMEMBERED_MAX, TakenNames
from shoal.ids import ClientTaskId, Key

FUNCTION = b"its digest"


def record(key, number):
    return Record(Key(key), ClientTaskId(number))


def test_a_name_is_anothers_while_the_same_want_lasts():
    names, one = TakenNames(), record("x", 1)
    assert not names.is_another(one, FUNCTION, b"1", ())
    assert not names.is_another(one, FUNCTION, b"1", ())
    assert names.is_another(one, b"another", b"1", ())
    assert names.is_another(one, FUNCTION, b"2", ())
    assert names.is_another(one, FUNCTION, b"1", (Key("y"),))
    assert not names.is_another(record("x", 2), FUNCTION, b"2", ())  # it was let go of


def test_of_large_arguments_the_beginning_and_the_size_count():
    names, one, large = TakenNames(), record("x", 1), b"1" * HASHED_NBYTES
    assert not names.is_another(one, FUNCTION, large + b"2", ())
    assert not names.is_another(one, FUNCTION, large + b"3", ())
    assert names.is_another(one, FUNCTION, large + b"22", ())


def test_the_oldest_names_are_forgotten():
    names = TakenNames()
    for i in range(REMEMBERED_MAX + 1):
        names.is_another(record(f"x{i}", i + 1), FUNCTION, b"1", ())
    assert names.is_another(record("x1", 2), FUNCTION, b"2", ())
    assert not names.is_another(record("x0", 1), FUNCTION, b"2", ())


@pytest.fixture
def many_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_many_threads_may_choose_names_at_once(many_switches):
    names, failed = TakenNames(), []

    def choose(n):
        try:
            for i in range(2 * REMEMBERED_MAX):
                names.is_another(record(f"{n}-{i}", i + 1), FUNCTION, b"1", ())
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=choose, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
