"""What arguments of calls about workers mean, and what is made of the verdicts."""

import pytest

from shoal.errors import (
    NoCopies,
    UnsupportedOption,
    WithoutNanny,
    WorkersNotBack,
    WorkersNotRestarted,
)
from shoal.protocol.membership import Closing
from shoal.protocol.operations import (
    addresses_of,
    require_back,
    require_copies,
    require_restarted,
    retired,
    who_retires,
    worker_names,
)

THERE = {"tcp://a:1": {"name": "a"}, "tcp://b:1": {"name": 7}}


def test_one_worker_is_one_name_and_several_are_whatever_holds_them():
    assert worker_names("abc") == ["abc"]
    assert worker_names({"b": 1, "a": 2}.keys()) == ["a", "b"]
    assert worker_names(name for name in "ba") == ["a", "b"]
    for wrong in ({"a": 1}, b"a", object()):
        with pytest.raises(TypeError, match="an address, name or host"):
            worker_names(wrong)


def test_who_retires_is_named_or_counted_and_not_both():
    assert who_retires("abc", None, {}) == (["abc"], None)
    assert who_retires(None, [7, "a"], {}) == (["7", "a"], None)
    assert who_retires(None, None, {"n": 1, "key": "host"}) == (None, Closing(n=1, group="host"))
    with pytest.raises(TypeError, match="mutually exclusive"):
        who_retires("a", "b", {})
    with pytest.raises(TypeError, match="n can't be used together"):
        who_retires("a", None, {"n": 1})
    with pytest.raises(TypeError, match="nonsense"):
        who_retires(None, None, {"nonsense": 1})
    with pytest.raises(UnsupportedOption, match="host"):
        who_retires(None, None, {"key": len})


def test_only_those_that_were_let_go_are_retired():
    assert retired({"x": "", "y": "nobody takes it", "z": ""}, {"x": 1}) == {"x": 1, "z": {}}


def test_workers_are_found_by_address_or_name_and_none_is_passed_over():
    assert addresses_of("a", THERE) == {"a": "tcp://a:1"}
    assert addresses_of([7, "tcp://a:1"], THERE) == {7: "tcp://b:1", "tcp://a:1": "tcp://a:1"}
    with pytest.raises(KeyError, match="nobody"):
        addresses_of(["a", "nobody"], THERE)


def test_who_is_not_back_is_told_of():
    found = {"a": "x", 7: "y"}
    both = {"x": "OK", "y": "OK"}
    assert require_restarted(found, both, 1.0, raises=True) == {"a": "OK", 7: "OK"}
    assert require_restarted(found, {"x": "OK"}, 1.0, raises=False) == {"a": "OK", 7: "removed"}
    with pytest.raises(WorkersNotRestarted):
        require_restarted(found, {"x": "OK", "y": "timed out"}, 1.0, raises=True)
    with pytest.raises(WithoutNanny):
        require_restarted(found, {"y": "no nanny"}, 1.0, raises=False)
    require_back({"x": "OK"}, 1.0)
    with pytest.raises(WorkersNotBack):
        require_back({"x": "OK", "y": "removed"}, 1.0)


def test_no_copy_is_no_number_of_copies():
    assert (require_copies(None, 2), require_copies(3, 1)) == (0, 3)
    with pytest.raises(NoCopies):
        require_copies(0, 2)
    with pytest.raises(ValueError, match="branching_factor"):
        require_copies(1, 0)
