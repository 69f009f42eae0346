"""Comms over TLS: certificates say whom one talks to, and the token who may talk.

The two files beside this one are a key and a certificate each, for these tests alone.
"""

import asyncio
import socket
import ssl
import struct
from pathlib import Path

import numpy as np
import pytest

from shoal.comms import endpoints
from shoal.comms.authority import published_token
from shoal.comms.errors import AddressError, AuthenticationError, CommClosedError
from shoal.compat.comm import carried, handshaking
from shoal.compat.comm.core import connect, listen
from shoal.compat.comm.errors import FatalCommClosedError, NoContext
from shoal.compat.comm.tls import STRANGERS_NBYTES_MAX, TLSConnector, TLSListener
from shoal.compat.serialising.wrappers import to_serialize
from shoal.protocol.handshake import Keyring
from tests.unit.compat.test_comms import play

HERE = Path(__file__).parent
OURS, STRANGERS = HERE / "certificate.pem", HERE / "certificate-of-a-stranger.pem"


def context(purpose, certificate=OURS):
    """Shows that certificate, and wants to see ours."""
    made = ssl.create_default_context(purpose, cafile=str(OURS))
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_cert_chain(certificate)
    return made


def listening(handle, **kwargs):
    return listen("tls://127.0.0.1", handle, ssl_context=context(ssl.Purpose.CLIENT_AUTH), **kwargs)


def dialling(certificate=OURS):
    return {"ssl_context": context(ssl.Purpose.SERVER_AUTH, certificate)}


async def answer(comm):
    """Says back whatever it hears."""
    while True:
        await comm.write(await comm.read())


def test_messages_go_both_ways_encrypted_and_both_see_the_others_certificate():
    async def scenario():
        async with listening(answer) as listener:
            comm = await connect(listener.contact_address, **dialling())
            array = np.arange(1_000_000)
            await comm.write({"x": to_serialize(array)})
            assert ((await comm.read())["x"] == array).all()
            assert comm.peer_address == listener.contact_address
            assert comm.extra_info["peercert"]["subject"] == ((("commonName", "localhost"),),)
            assert comm.extra_info["cipher"][2] >= 128
            await comm.close()
            with pytest.raises(CommClosedError):
                await comm.write(1)

    play(scenario)


def test_without_certificates_or_with_another_authoritys_nobody_is_reached():
    async def scenario():
        with pytest.raises(NoContext, match="ssl_context"):
            TLSListener("127.0.0.1", answer)
        async with listening(answer) as listener:
            with pytest.raises(NoContext):
                await connect(listener.contact_address)
            with pytest.raises(CommClosedError):
                await connect(listener.contact_address, **dialling(STRANGERS))
        other = context(ssl.Purpose.CLIENT_AUTH, STRANGERS)
        async with listen("tls://127.0.0.1", answer, ssl_context=other) as listener:
            with pytest.raises(FatalCommClosedError, match="same authority"):
                await connect(listener.contact_address, **dialling())

    play(scenario)


def test_a_certificate_is_no_token_and_a_stranger_may_say_little():
    async def scenario():
        handled = []
        async with listening(handled.append) as listener:
            location = listener.contact_address.removeprefix("tls://")
            stranger = await TLSConnector().connect(location, **dialling())
            with pytest.raises(AuthenticationError):
                await handshaking.prove(stranger, Keyring.from_token(b"x"), "client", location)
            talker = await TLSConnector().connect(location, **dialling())
            talker._writer.write(struct.pack("<2Q", 1, STRANGERS_NBYTES_MAX + 1))
            with pytest.raises(CommClosedError):
                await talker.read()
            for comm in (stranger, talker):
                await comm.close()
        assert handled == []

    play(scenario)


def test_either_end_notices_a_peer_that_vanished_without_a_word():
    async def scenario():
        came = asyncio.Queue()
        async with listening(came.put) as listener:
            ours = await connect(listener.contact_address, **dialling())
            theirs = await came.get()
            for comm in (ours, theirs):
                sock = comm._writer.get_extra_info("socket")
                assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            await asyncio.gather(ours.close(), theirs.close())

    play(scenario)


def test_a_clusters_own_connections_do_not_go_by_it():
    async def scenario():
        keys = Keyring.from_token(b"token")
        with pytest.raises(AddressError, match="for comms of programs' own"):
            await endpoints.connect(
                "tls://127.0.0.1:1", keys, "client", carried._DECODER, timeout_seconds=1
            )

    play(scenario)


def test_a_listener_that_has_stopped_is_forgotten_with_its_token():
    async def scenario():
        async with TLSListener(
            "127.0.0.1", answer, ssl_context=context(ssl.Purpose.CLIENT_AUTH)
        ) as listener:
            comm = await connect(listener.contact_address, **dialling())
            await comm.close()
            published = published_token(listener.contact_address)
            assert published is not None
        assert published_token(listener.contact_address) is None

    play(scenario)
