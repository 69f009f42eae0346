"""What a zygote may import for its children, and that nothing of it is shared that must differ."""

import os
import sys

import pytest

from shoal.nanny import warming
from shoal.nanny.bootstrap import kind_of_interpreter
from tests.programs import printed_by


def test_each_module_has_a_bit_and_the_earlier_ones_come_first() -> None:
    everything = (1 << len(warming.CANDIDATES)) - 1
    left, order = everything, []
    while left:
        before, left = left, warming.load_one(left)
        order.append(warming.CANDIDATES[(before ^ left).bit_length() - 1])
    assert order == list(warming.CANDIDATES)
    assert warming.loaded_here() & 1
    assert "dask.array" in sys.modules


def test_where_libraries_shall_have_threads_there_is_another_zygote() -> None:
    one = {"PATH": "/bin", "OMP_NUM_THREADS": "1"}
    assert not warming.wants_threads(one)
    assert not warming.wants_threads({"PATH": "/bin"})
    assert kind_of_interpreter(one) == kind_of_interpreter({})
    many = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "4"}
    assert warming.wants_threads(many)
    assert kind_of_interpreter(many) != kind_of_interpreter(one)


SIBLINGS = """
import os, numpy.random
from shoal.nanny.warming import nthreads_that_matter, reseed
print(nthreads_that_matter())
for reseeds in (False, False, True, True):
    ours, theirs = os.pipe()
    if os.fork() == 0:
        if reseeds:
            reseed()
        os.write(theirs, str(numpy.random.random()).encode())
        os._exit(0)
    print(os.read(ours, 100).decode())
    os.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux")
def test_siblings_draw_different_numbers_and_libraries_start_no_threads() -> None:
    pytest.importorskip("numpy")
    environ = os.environ | dict.fromkeys(warming.THREAD_COUNTS, "1")
    nthreads, same, as_well, one, another = printed_by("-c", SIBLINGS, environ=environ).split()
    assert nthreads == "1"
    assert same == as_well
    assert len({same, one, another}) == 3
