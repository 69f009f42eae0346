"""How one command line becomes the options of each of its workers."""

import pytest
from dask.system import CPU_COUNT

from shoal.cli.worker import options_of, read_nworkers

LEFT_OUT = dict.fromkeys(
    (
        "name",
        "host",
        "interface",
        "listen_address",
        "contact_address",
        "local_directory",
        "resources",
    )
) | {"nthreads": 0, "memory_limit": "auto", "port": 0, "protocol": "tcp"}


def test_several_workers_share_the_cpus_and_the_name():
    several = [options_of(index, 2, {**LEFT_OUT, "name": "alice"}) for index in range(2)]
    assert [one["name"] for one in several] == ["alice-0", "alice-1"]
    assert {one["nthreads"] for one in several} == {max(1, CPU_COUNT // 2)}


def test_what_was_left_out_is_not_passed_on():
    assert set(options_of(0, 1, LEFT_OUT)) == {"nthreads", "memory_limit"}


def test_a_memory_limit_of_none_and_the_name_0_are_passed_on():
    options = options_of(0, 1, {**LEFT_OUT, "memory_limit": "0", "name": 0})
    assert (options["memory_limit"], options["name"]) == ("0", 0)


def test_an_interface_wins_over_a_host():
    options = options_of(0, 1, {**LEFT_OUT, "interface": "10.0.0.1", "host": "h"})
    assert options["host"] == "10.0.0.1"


def test_a_number_of_workers_is_counted_from_the_cpus_if_negative():
    assert read_nworkers("3") == 3
    assert read_nworkers("auto") >= 1
    assert read_nworkers("-1") == CPU_COUNT
    with pytest.raises(ValueError, match="makes"):
        read_nworkers(str(-CPU_COUNT - 1))


def test_a_listen_address_says_host_and_port():
    options = options_of(0, 1, {**LEFT_OUT, "listen_address": "tcp://[::1]:4000"})
    assert (options["host"], options["port"]) == ("::1", 4000)
