"""Handshake: each role against a right, wrong, missing, replayed, reflected or cut answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.protocol.handshake import (
    CLIENT,
    HANDSHAKE_BYTES_MAX,
    VERSION,
    WORKER,
    ClientHandshake,
    Keyring,
    ServerHandshake,
)

KEYS = Keyring.from_token(b"right")
OTHER_KEYS = Keyring.from_token(b"wrong")
ROLES = (CLIENT, WORKER)
CERTIFICATE = b"\x07" * 32


def nonce(number: int) -> bytes:
    return number.to_bytes(32, "big")


def client(
    role: str = CLIENT, keys: Keyring = KEYS, number: int = 1, binding: bytes = bytes(32)
) -> ClientHandshake:
    return ClientHandshake(keys, role, nonce(number), binding)


def server(keys: Keyring = KEYS, number: int = 2, binding: bytes = bytes(32)) -> ServerHandshake:
    return ServerHandshake(keys, nonce(number), binding)


def converse(ours: ClientHandshake, theirs: ServerHandshake, piece_nbytes: int = 4096) -> None:
    """Carry bytes both ways, in pieces, until both fall silent."""
    to_server, to_client = ours.start(), theirs.start()
    while to_server or to_client:
        heard, to_server = to_server, b""
        for at in range(0, len(heard), piece_nbytes):
            to_client += theirs.receive(heard[at : at + piece_nbytes])
        heard, to_client = to_client, b""
        for at in range(0, len(heard), piece_nbytes):
            to_server += ours.receive(heard[at : at + piece_nbytes])


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("piece_nbytes", [1, 7, 4096])
def test_both_sides_are_done_when_both_hold_the_token(role: str, piece_nbytes: int) -> None:
    ours, theirs = client(role), server()
    converse(ours, theirs, piece_nbytes)
    assert (ours.done, theirs.done, theirs.role) == (True, True, role)
    assert (ours.failure, theirs.failure) == (None, None)


@pytest.mark.parametrize("role", ROLES)
def test_a_client_does_not_answer_a_server_with_another_token(role: str) -> None:
    ours, theirs = client(role, OTHER_KEYS), server()
    converse(ours, theirs)
    assert not ours.done
    assert not theirs.done
    assert ours.failure is not None
    assert "SHOAL_TOKEN_FILE" in ours.failure


@pytest.mark.parametrize("role", ROLES)
def test_a_server_refuses_a_proof_made_with_another_token(role: str) -> None:
    """The client here skips its own check, as an attacker would."""
    theirs = server()
    theirs.receive(client(role).start())
    refusal = theirs.receive(b"\x00" * 32)
    assert not theirs.done
    assert theirs.role == ""
    assert b"token" in refusal
    assert len(refusal) <= 8 + 512


def test_a_worker_can_not_prove_itself_a_client() -> None:
    worker_keys = KEYS.only(WORKER)
    with pytest.raises(KeyError):
        client(CLIENT, worker_keys)
    forged = Keyring({CLIENT: worker_keys.key(WORKER) or b""})
    ours, theirs = client(CLIENT, forged), server()
    converse(ours, theirs)
    assert not theirs.done


def test_a_worker_that_listens_accepts_only_what_it_can_check() -> None:
    ours, theirs = client(CLIENT), server(KEYS.only(WORKER))
    converse(ours, theirs)
    assert not theirs.done
    assert ours.failure == "This service accepts only the role worker. Connect as that."
    ours, theirs = client(WORKER), server(KEYS.only(WORKER))
    converse(ours, theirs)
    assert theirs.done


@pytest.mark.parametrize("role", ROLES)
def test_a_recorded_proof_is_worth_nothing_the_next_time(role: str) -> None:
    ours, theirs = client(role), server(number=2)
    hello = ours.start()
    proof = ours.receive(theirs.receive(hello))
    theirs.receive(proof)
    assert theirs.done
    again = server(number=3)
    again.receive(hello)
    again.receive(proof)
    assert not again.done
    assert again.failure is not None


@pytest.mark.parametrize("role", ROLES)
def test_a_recorded_challenge_is_worth_nothing_the_next_time(role: str) -> None:
    challenge = server().receive(client(role, number=1).start())
    later = client(role, number=4)
    assert later.receive(challenge) == b""
    assert later.failure is not None


@pytest.mark.parametrize("role", ROLES)
def test_an_answer_of_the_server_is_worth_nothing_as_the_answer_of_a_client(role: str) -> None:
    """The attacker opens a second connection, to have its challenge answered for it."""
    victim = server(number=2)
    first = victim.receive(client(role, number=1).start())
    oracle = server(number=5)
    reflected = oracle.receive(b"SHL1" + bytes((VERSION, 1 + ROLES.index(role))) + first[6:38])
    victim.receive(reflected[-32:])
    assert not victim.done


@pytest.mark.parametrize("role", ROLES)
def test_a_proof_that_is_cut_is_waited_for_and_never_accepted(role: str) -> None:
    ours, theirs = client(role), server()
    proof = ours.receive(theirs.receive(ours.start()))
    for byte in proof[:-1]:
        assert theirs.receive(bytes((byte,))) == b""
        assert not theirs.ended
    theirs.receive(proof[-1:])
    assert theirs.done


def test_two_sides_that_see_different_certificates_do_not_trust_each_other() -> None:
    ours, theirs = client(binding=CERTIFICATE), server()
    converse(ours, theirs)
    assert not ours.done
    assert not theirs.done
    ours, theirs = client(binding=CERTIFICATE), server(binding=CERTIFICATE)
    converse(ours, theirs)
    assert theirs.done


def test_another_version_is_refused_with_both_versions_in_the_text() -> None:
    """The bytes are those of a client and of a service that came after us."""
    theirs = server()
    refusal = theirs.receive(b"SHL1" + bytes((9, 1)) + nonce(1))
    ours = client()
    ours.start()
    ours.receive(refusal)
    for failure in (ours.failure, theirs.failure):
        assert failure is not None
        assert f"the service {VERSION}, whoever connects to it 9" in failure
    ours = client()
    ours.receive(b"SHL1" + bytes((9, 0)) + bytes(64))
    assert ours.failure is not None
    assert f"the service 9, whoever connects to it {VERSION}" in ours.failure


def test_a_refusal_by_any_other_version_is_read() -> None:
    """Whatever version the head of it has, and however it comes cut."""
    text = "Speak version 0, or none."
    for version in (0, 2, 255):
        refusal = b"SHL1" + bytes((version, 1)) + len(text).to_bytes(2, "little") + text.encode()
        for cut in (1, 5, 7, len(refusal) - 1):
            ours = client()
            ours.start()
            ours.receive(refusal[:cut])
            assert not ours.ended
            ours.receive(refusal[cut:])
            assert ours.failure == text


def test_what_is_said_to_strangers_of_other_versions_does_not_change() -> None:
    """Bytes that every version must go on understanding: the head, and how a refusal is told."""
    greeting = client().start()
    assert greeting[:6] == b"SHL1" + bytes((VERSION, 1))
    assert len(greeting) == 38
    refusal = server().receive(b"SHL1" + bytes((VERSION + 1, 2)) + nonce(1))
    assert refusal[:6] == b"SHL1" + bytes((VERSION, 1))
    assert int.from_bytes(refusal[6:8], "little") == len(refusal) - 8


def test_something_else_on_the_port_is_told_apart_from_a_wrong_token() -> None:
    ours, theirs = client(), server()
    ours.receive(b"HTTP/1.1 400 Bad Request\r\n")
    assert ours.failure is not None
    assert "not a shoal service" in ours.failure
    assert b"nothing else" in theirs.receive(b"GET / HTTP/1.1\r\n")


def test_a_server_that_accepts_before_the_proof_is_not_trusted() -> None:
    ours = client()
    ours.receive(b"SHL1" + bytes((VERSION, 2)))
    assert not ours.done
    assert ours.failure is not None


def test_what_follows_the_handshake_is_handed_over() -> None:
    ours, theirs = client(), server()
    proof = ours.receive(theirs.receive(ours.start()))
    accepted = theirs.receive(proof + b"first frame")
    ours.receive(accepted + b"answer")
    assert (theirs.leftover, ours.leftover) == (b"first frame", b"answer")


@given(noise=st.binary(min_size=1, max_size=300), valid_hello=st.booleans())
def test_noise_lets_nobody_in(noise: bytes, valid_hello: bool) -> None:
    theirs, ours = server(), client()
    if valid_hello:
        theirs.receive(client().start())
    theirs.receive(noise)
    ours.receive(noise)
    assert not theirs.done
    assert not ours.done


def test_a_server_hears_no_more_than_its_limit_not_even_from_one_with_the_token() -> None:
    """What follows a good proof at once is welcome, but only within the limit."""
    for nbytes, let_in in ((HANDSHAKE_BYTES_MAX - 70, True), (HANDSHAKE_BYTES_MAX - 69, False)):
        ours, theirs = client(), server()
        proof = ours.receive(theirs.receive(ours.start()))
        assert len(ours.start() + proof) == 70
        theirs.receive(proof + bytes(nbytes))
        assert theirs.done is let_in
        assert let_in or "Too many bytes" in str(theirs.failure)


def test_a_keyring_does_not_show_its_keys() -> None:
    shown = repr(KEYS)
    for role in ROLES:
        key = KEYS.key(role)
        assert key is not None
        assert key.hex() not in shown
        assert repr(key) not in shown
    assert "right" not in shown
