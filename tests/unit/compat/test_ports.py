"""Ports that workers and nannies share."""

import pytest

from shoal.compat.ports import apportion_ports


@pytest.mark.parametrize(
    ("asked", "shares"),
    [
        ((None, None, 2, False), [{"port": None}, {"port": None}]),
        (("9000", None, 1, False), [{"port": 9000}]),
        (("0", None, 1, True), [{"port": None, "worker_port": 0}]),
        (("1:4", None, 3, False), [{"port": [1, 4]}, {"port": 2}, {"port": 3}]),
        (
            ("1:4", "5:6", 2, True),
            [{"port": 5, "worker_port": [1, 3]}, {"port": 6, "worker_port": [2, 4]}],
        ),
        (
            ("1:4", "1:4", 2, True),
            [{"port": 2, "worker_port": 1}, {"port": 4, "worker_port": 3}],
        ),
        (
            ("1:6", "5:7", 2, True),
            [{"port": [5, 7], "worker_port": [1, 3]}, {"port": 6, "worker_port": [2, 4]}],
        ),
    ],
)
def test_each_has_ports_of_its_own(asked, shares):
    assert apportion_ports(*asked) == shares


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("1:3", None, 4, False), "Not enough ports"),
        ((None, "1:3", 4, False), "Not enough ports"),
        (("1:3", "3:5", 3, True), "Not enough ports"),
        (("3:1", None, 1, False), "greater than port_start"),
        (("a", None, 1, False), "invalid literal"),
        (("1:2:3", None, 1, False), "unpack"),
    ],
)
def test_what_is_no_port_or_too_few_is_said(asked, words):
    with pytest.raises(ValueError, match=words):
        apportion_ports(*asked)
