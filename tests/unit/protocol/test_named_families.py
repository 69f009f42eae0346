"""Who names families gets what those can write and read, and nothing else."""

import datetime
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from shoal.protocol.families import named, registry
from shoal.protocol.families.errors import FamilyNotAllowed, NoneOfTheFamilies, NoSuchFamily
from shoal.protocol.families.pickling import _restore
from shoal.protocol.payload import OUT_OF_BAND_NBYTES_MIN, Guarded, dump, hand, load

PLAIN: list[Any] = [None, 1, 1.5, "a", b"b", [1, {"a": (2,)}], {1, 2}, 1j, range(3), b"x" * 20_000]


class Marked:
    """What the family of these tests writes."""

    def __init__(self, text: str) -> None:
        self.text = text


def dumps(value: Any) -> tuple[dict[str, Any], list[Any]]:
    if not isinstance(value, Marked):
        raise NotImplementedError
    return {}, [value.text.encode()]


def loads(header: dict[str, Any], frames: list[Any]) -> Any:
    return Marked(bytes(frames[0]).decode())


@pytest.fixture
def family() -> Iterator[str]:
    registry.register_serialization_family("marks", dumps, loads)
    yield "marks"
    del registry.families["marks"]


def through(value: object, written: list[str] | None, read: list[str]) -> Any:
    header, buffers = dump(value, written)
    sent = [bytearray(memoryview(buffer)) for buffer in buffers]
    return load(Guarded.of(header, read), sent)


@pytest.mark.parametrize("value", PLAIN, ids=lambda value: type(value).__name__)
def test_plain_values_need_no_family(value: Any) -> None:
    assert through(value, ["msgpack"], ["msgpack"]) == value
    assert through(value, None, []) == value  # nor does who writes as usual


@pytest.mark.parametrize("array", [np.arange(5), np.arange(OUT_OF_BAND_NBYTES_MIN)], ids=len)
def test_arrays_and_registered_types_are_of_the_family_dask(array: Any) -> None:
    assert (through([array], ["dask"], ["dask"])[0] == array).all()
    assert (through([array], None, ["dask"])[0] == array).all()
    assert through(memoryview(b"abc"), ["dask"], ["dask"]) == b"abc"
    with pytest.raises(FamilyNotAllowed, match="msgpack"):
        through([array], None, ["msgpack"])
    with pytest.raises(FamilyNotAllowed, match="msgpack"):
        through([array], ["dask"], ["msgpack"])
    with pytest.raises(NoneOfTheFamilies, match="list"):
        dump([array], ["msgpack"])


def test_what_is_of_no_family_is_not_written() -> None:
    with pytest.raises(NoneOfTheFamilies, match="'pickle' as well"):
        dump([1, Marked("x")], ["dask", "msgpack"])
    assert through(Marked("x"), ["dask", "pickle"], ["pickle"]).text == "x"


def test_a_large_stream_is_read_by_the_same_rules() -> None:
    many = ["text"] * OUT_OF_BAND_NBYTES_MIN
    assert through(many, ["msgpack"], ["msgpack"]) == many
    with pytest.raises(FamilyNotAllowed, match="pickle"):
        through([*many, Marked("x")], None, ["msgpack"])


class Ran(Exception):
    """Code of a stream was run."""


def run(*args: object) -> None:
    raise Ran


class Bomb:
    """Runs what it likes where it is loaded."""

    def __reduce__(self) -> Any:
        return run, (1,)


@pytest.mark.parametrize("read", [["msgpack"], ["dask"], ["dask", "msgpack"]], ids=str)
def test_no_code_of_a_refused_stream_is_run(read: list[str]) -> None:
    with pytest.raises(Ran):
        load(pickle.dumps(Bomb()))
    for stream in (pickle.dumps(Bomb()), pickle.dumps([1, Bomb()]), pickle.dumps(run)):
        with pytest.raises(FamilyNotAllowed, match="pickle"):
            load(Guarded.of(stream, read))


def test_a_stream_may_name_a_registered_type_and_not_call_it() -> None:
    class Calls:
        def __reduce__(self) -> Any:
            return memoryview, (b"abc",)

    assert load(pickle.dumps(Calls())) == b"abc"
    with pytest.raises(TypeError, match="callable"):
        load(Guarded.of(pickle.dumps(Calls()), ["dask"]))


def test_a_deserializer_that_came_along_is_not_called() -> None:
    class Local:
        pass

    registry.register_serialization(Local, lambda value: ({}, []), lambda header, frames: "loaded")
    header, buffers = dump(Local())
    del registry.dask_deserialize._lookup[Local]
    assert load(header, buffers) == "loaded"
    with pytest.raises(FamilyNotAllowed):
        load(Guarded.of(header, ["dask"]), buffers)


def test_a_family_of_ones_own_is_asked_in_its_place(family: str) -> None:
    assert through(Marked("x"), [family], [family]).text == "x"
    assert through(Marked("x" * 50_000), [family, "pickle"], [family]).text == "x" * 50_000
    assert through([Marked("y")], [family, "pickle"], ["pickle"])[0].text == "y"
    assert through(3, [family, "msgpack"], ["msgpack"]) == 3
    with pytest.raises(FamilyNotAllowed, match=family):
        through(Marked("x"), [family], ["dask"])


def test_a_family_that_is_nowhere_is_missed_by_name(family: str) -> None:
    with pytest.raises(NoSuchFamily, match="no family 'nowhere'"):
        dump(Marked("x"), ["nowhere"])
    header, buffers = dump(Marked("x"), [family])
    registered = registry.families.pop(family)
    with pytest.raises(NoSuchFamily, match=family):
        load(header, buffers)
    registry.families[family] = registered


def test_families_are_named_in_a_list_of_texts() -> None:
    assert named.checked(None) is None
    assert named.checked(["dask", "pickle"]) is None  # what is done anyway
    assert named.checked(("msgpack",)) == ("msgpack",)
    with pytest.raises(TypeError, match="in a list"):
        named.checked("pickle")
    with pytest.raises(TypeError, match="texts"):
        named.checked([1])


def test_what_is_handed_over_within_a_process_is_not_read_at_all() -> None:
    moment = datetime.datetime(2026, 1, 1)
    header, buffers = hand(moment)
    assert load(Guarded.of(header, []), buffers) is moment


OBJECTS = np.array([1, "a", None, (2.5, b"b")], dtype=object)
RECORDS = np.array([(1, 2.5)], dtype=[("x", "i4"), ("y", "f8")])
MASKED = np.ma.MaskedArray([1, 2], mask=[True, False], fill_value=7)


@pytest.mark.parametrize("array", [OBJECTS, RECORDS, MASKED], ids=["objects", "records", "masked"])
def test_what_is_pickled_inside_of_an_array_is_read_if_it_is_of_the_families(array: Any) -> None:
    (found,) = through([array], ["dask"], ["dask"])
    assert found.dtype == array.dtype
    assert found.tolist() == array.tolist()


def test_sparse_matrices_are_of_the_family_dask() -> None:
    scipy = pytest.importorskip("scipy.sparse")
    matrix = scipy.csr_matrix(np.eye(3))
    (found,) = through([matrix], ["dask"], ["dask"])
    assert (found.toarray() == np.eye(3)).all()


def hidden_bombs() -> dict[str, tuple[type, dict[str, Any], list[Any]]]:
    """Types, headers and frames that their deserializers find a bomb in."""
    bomb = pickle.dumps(Bomb())
    whole: dict[str, Any] = {"pickle": True, "writeable": ()}
    raw = {"writeable": [True], "shape": (1,), "strides": (8,)}
    values = {**raw, "dtype": (0, "<i8")}
    return {
        "objects": (np.ndarray, whole, [bomb]),
        "dtype": (np.ndarray, {**raw, "dtype": (1, bomb)}, [bytes(8)]),
        "masked": (np.ma.MaskedArray, whole, [bomb]),
        "fill": (np.ma.MaskedArray, {"values": values, "nframes": 1, "fill": bomb}, [bytes(8)]),
    }


class Hidden:
    """Travels as an array, and is none."""

    def __init__(self, kind: type, header: dict[str, Any], frames: list[Any]) -> None:
        self.parts = kind, "", header, *frames

    def __reduce__(self) -> Any:
        return _restore, self.parts


@pytest.mark.parametrize("where", ["objects", "dtype", "masked", "fill"])
def test_no_code_that_is_hidden_inside_of_an_array_is_run(where: str) -> None:
    stream = pickle.dumps(Hidden(*hidden_bombs()[where]))
    with pytest.raises(Ran):
        load(stream)
    with pytest.raises(FamilyNotAllowed, match="pickle"):
        load(Guarded.of(stream, ["dask"]))


@pytest.mark.parametrize("name", ["dtype", "other"])
def test_a_stream_does_not_choose_what_is_imported(name: str) -> None:
    assert "numpy.testing.print_coercion_tables" not in sys.modules
    with pytest.raises(FamilyNotAllowed, match="pickle"):
        load(Guarded.of(f"cnumpy.testing.print_coercion_tables\n{name}\n.".encode(), ["dask"]))
    assert "numpy.testing.print_coercion_tables" not in sys.modules
