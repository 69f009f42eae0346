"""Errors of this layer travel to other processes, and say what to do."""

import pickle

import pytest

from shoal.comms import (
    AddressError,
    AuthenticationError,
    CallTimeoutError,
    CommClosedError,
    ConnectError,
    FrameTooLarge,
    ListenError,
    TokenFileError,
)

ERRORS = [
    AddressError("x://y", "the scheme 'x' is unknown"),
    AuthenticationError.missing_key("tcp://h:1", "client"),
    AuthenticationError.refused("tcp://h:1", "Your proof of the token is wrong."),
    CallTimeoutError("who_has", "tcp://h:1", 2.5),
    CommClosedError.already("tcp://h:1"),
    CommClosedError.lost("tcp://h:1", "reset by peer"),
    ConnectError.refused("tcp://h:1", "Connection refused"),
    ConnectError.slow("tcp://h:1", 3, "Connection refused"),
    FrameTooLarge("bytes of messages", 2_000, 1_000),
    ListenError.failed("tcp://h:1", "Address already in use"),
    TokenFileError.unsafe("/run/t", "others may use it"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_after_a_journey(error: Exception) -> None:
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert vars(arrived) == vars(error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_names_its_subject_in_whole_sentences(error: Exception) -> None:
    assert any(subject in str(error) for subject in ("h:1", "x://y", "2,000", "/run/t"))
    assert str(error).endswith(".")


def test_lost_connections_and_refusals_are_os_errors_as_programs_expect() -> None:
    assert all(
        issubclass(kind, OSError)
        for kind in (CommClosedError, ConnectError, AuthenticationError, CallTimeoutError)
    )
