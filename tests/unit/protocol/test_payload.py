"""What users own becomes bytes and comes back equal; what is large is not copied."""

import enum
import pickle
import sys
import threading
from collections import OrderedDict
from typing import Any

import cloudpickle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.protocol.payload import (
    DEFAULT_NBYTES,
    NBUFFERS_MAX,
    InputRef,
    dump,
    dump_call,
    dump_function,
    dump_small,
    hand,
    kind_of,
    load,
    load_call,
    nbytes_of,
)
from tests.programs import printed_by

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    scalars | st.binary(max_size=50_000),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.tuples(inner, inner)
        | st.dictionaries(scalars, inner, max_size=5)
    ),
    max_leaves=20,
)


@given(values)
def test_a_value_comes_back_equal(value: object) -> None:
    """Whole, small enough to travel inline, and by reference."""
    header, buffers = dump(value)
    assert load(header, [bytearray(memoryview(buffer)) for buffer in buffers]) == value
    small = dump_small(value, 1000)
    assert small is None or (len(small) <= 1000 and load(small) == value)
    assert load(*hand(value)) is value


def test_large_buffers_are_out_of_band_and_shared() -> None:
    """The memory of the array itself is what would be sent, and what is received is used."""
    array = np.arange(100_000)
    header, buffers = dump({"a": array, "small": np.arange(10)})
    assert len(header) < 1000
    assert len(buffers) == 1
    assert np.shares_memory(np.frombuffer(buffers[0], array.dtype), array)
    received = bytearray(memoryview(buffers[0]))
    loaded: Any = load(header, [received])
    assert (loaded["a"] == array).all()
    assert np.shares_memory(loaded["a"], np.frombuffer(received, np.uint8))
    assert loaded["a"].flags.writeable


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_plain_bytes_are_out_of_band(kind: type) -> None:
    """Pickle would copy them into its stream."""
    value = kind(b"x" * 100_000)
    header, buffers = dump(value)
    assert len(header) < 200
    assert memoryview(buffers[0]).nbytes == 100_000
    loaded = load(header, buffers)
    assert type(loaded) is kind
    assert loaded == value


def test_a_large_stream_is_out_of_band_as_well() -> None:
    """A list of texts has no buffers of its own."""
    value = [str(number) for number in range(50_000)]
    header, buffers = dump(value)
    assert len(header) < 1000
    assert len(buffers) == 1
    assert load(header, buffers) == value


def test_a_value_has_a_bounded_number_of_buffers() -> None:
    """The rest goes into the stream, since a frame has a limit."""
    value = [np.full(3000, number) for number in range(NBUFFERS_MAX + 50)]
    header, buffers = dump(value)
    assert len(buffers) == NBUFFERS_MAX + 1  # and the stream
    loaded: Any = load(header, buffers)
    assert all((a == b).all() for a, b in zip(loaded, value, strict=True))


def test_what_is_not_contiguous_arrives_all_the_same() -> None:
    """Every second row, transposed."""
    value = np.arange(90_000).reshape(300, 300)[::2].T
    loaded: Any = load(*dump(value))
    assert (loaded == value).all()


def test_lambdas_and_local_classes_are_left_to_cloudpickle() -> None:
    """Plain pickle can't."""

    class Local:
        number = 7

    loaded: Any = load(*dump(Local()))
    assert loaded.number == 7
    function: Any = load(dump_function(lambda x: x + 1))
    assert function(1) == 2


def test_what_lives_in_main_is_sent_by_value() -> None:
    """Another process has another `__main__`: it must not be looked up there."""
    script = (
        "import sys; from shoal.protocol.payload import dump, dump_function\n"
        "def double(x): return 2 * x\n"
        "class Box: pass\n"
        "b = Box(); b.inside = 5\n"
        "sys.stdout.write(dump_function(double).hex() + ' ' + dump(b)[0].hex())\n"
    )
    function_hex, box_hex = printed_by("-c", script).split()
    function: Any = load(bytes.fromhex(function_hex))
    assert function(4) == 8
    box: Any = load(bytes.fromhex(box_hex))
    assert box.inside == 5


def test_modules_that_workers_can_not_import_are_sent_by_value() -> None:
    """The user told cloudpickle so."""
    module = sys.modules[__name__]
    by_reference = len(dump_function(Shade))
    cloudpickle.register_pickle_by_value(module)
    try:
        assert len(dump_function(Shade)) > 2 * by_reference
        assert dump_small(Shade.dark, 100_000) is None
    finally:
        cloudpickle.unregister_pickle_by_value(module)


class Shade(enum.Enum):
    dark = 1


def test_what_nobody_can_pickle_raises() -> None:
    """The cause is what the user needs to see."""
    with pytest.raises(TypeError, match="lock"):
        dump(threading.Lock())
    assert dump_small(threading.Lock(), 1000) is None


def test_small_values_are_dumped_and_large_ones_given_up() -> None:
    """By length, by bits, by what the stream grows to, and before buffers are copied."""
    for small in (1, "x", b"y", [1, 2], {"a": (None, 1.5)}, np.float64(3), np.arange(4), {1}):
        dumped = dump_small(small, 1024)
        assert dumped is not None
        assert np.all(load(dumped) == small)
    large: list[object] = [
        "x" * 2000,
        b"x" * 2000,
        1 << 9000,
        [None] * 2000,
        [["x" * 600], ["y" * 600]],
        np.arange(1000),
        {"deep": [np.zeros(10**6)]},
    ]
    for value in large:
        assert dump_small(value, 1024) is None


def test_the_limit_is_exact() -> None:
    """A value that takes as many bytes as are allowed is small."""
    for value in ("x" * 100, [1, [2, 3]], 12345):
        size = len(pickle.dumps(value, 5))
        assert dump_small(value, size) is not None
        assert dump_small(value, size - 1) is None


def test_input_refs_become_the_inputs_at_any_depth() -> None:
    """Twice the same one is the same object; as key of a dict and item of a set as well."""
    inputs = [object(), "k", (1, 2)]
    call = dump_call((InputRef(0), [InputRef(0), {InputRef(1): InputRef(2)}]), {"s": {InputRef(2)}})
    args, kwargs = load_call(call, inputs)
    assert args[0] is inputs[0]
    assert args[1][0] is inputs[0]
    assert args[1][1] == {"k": (1, 2)}
    assert kwargs == {"s": {(1, 2)}}


def test_an_input_ref_outside_of_a_run_says_so() -> None:
    """Also after a run was loaded by the same thread."""
    call = dump_call((InputRef(0),), {})
    load_call(call, ["x"])
    with pytest.raises(RuntimeError, match="outside of one"):
        load_call(call)


def test_threads_have_inputs_of_their_own() -> None:
    """Two threads load at the same time."""
    call = dump_call(([InputRef(0)] * 1000,), {})
    loaded: dict[int, bool] = {}

    def work(number: int) -> None:
        loaded[number] = all(load_call(call, [number])[0] == ([number] * 1000,) for _ in range(20))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loaded == dict.fromkeys(range(4), True)


class Sized:
    """Says of its size whatever it was told to say."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __sizeof__(self) -> int:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "answer", [-1, "big", None, 1.5, ValueError("no"), SystemExit(1), RecursionError(), 10**30]
)
def test_a_value_that_lies_about_its_size_gets_a_plausible_one(answer: object) -> None:
    """Negative, not a number, raising: the run that made it is not to suffer."""
    nbytes = nbytes_of(Sized(answer))
    assert isinstance(nbytes, int)
    assert 0 <= nbytes <= 2**62


def test_sizes_are_those_of_dask() -> None:
    """Arrays by their bytes, texts by what Python says, containers with what is in them."""
    assert nbytes_of(np.zeros(1000)) >= 8000
    assert nbytes_of("x" * 1000) == sys.getsizeof("x" * 1000)
    assert nbytes_of([np.zeros(1000)] * 2) > 8000
    assert nbytes_of(Sized(-1)) == DEFAULT_NBYTES


def test_a_kind_is_written_as_people_know_it() -> None:
    """Module and name."""
    assert kind_of(1) == "builtins.int"
    assert kind_of(OrderedDict()) == "collections.OrderedDict"


class NamelessKind(type):
    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError(f"no {name}")

    def __hash__(cls) -> int:
        raise RuntimeError("no hash")


class Nameless(metaclass=NamelessKind):
    pass


def test_a_value_of_an_odd_class_is_named_and_measured() -> None:
    """Its metaclass answers nothing."""
    assert kind_of(Nameless()) == "Nameless"
    assert nbytes_of(Nameless()) == DEFAULT_NBYTES
    assert dump_small(Nameless(), 1000) is None
