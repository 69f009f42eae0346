"""Certificates: found as configured, shown without secrets, and refused when required."""

import ssl

import dask
import pytest

from shoal import Client
from shoal.compat.security import Security
from shoal.errors import UnsupportedOption

EMPTY = "distributed.comm.tls"


def test_what_is_not_given_is_looked_up() -> None:
    settings = {f"{EMPTY}.ca-file": "ca", f"{EMPTY}.worker.cert": "c", f"{EMPTY}.max-version": 1.3}
    with dask.config.set(settings):
        found = Security(tls_worker_key="k")
    assert found.require_encryption is True
    assert found.tls_max_version == ssl.TLSVersion.TLSv1_3
    assert found.get_tls_config_for_role("worker") == {
        "ca_file": "ca", "ciphers": None, "cert": "c", "key": "k",
    }  # fmt: skip


def test_what_is_wrong_is_refused() -> None:
    with pytest.raises(TypeError, match="tls_nothing"):
        Security(tls_nothing=1)
    with pytest.raises(ValueError, match="tls_min_version=1 is not supported"):
        Security(tls_min_version=1)
    with pytest.raises(ValueError, match="unknown role 'boss'"):
        Security().get_connection_args("boss")
    with (
        dask.config.set({f"{EMPTY}.min-version": 1.1}),
        pytest.raises(ValueError, match=r"min-version=1\.1"),
    ):
        Security()


def test_it_is_shown_without_what_is_secret() -> None:
    found = Security(tls_client_key="-----BEGIN\nsecret", tls_ca_file="ca.pem")
    for shown in (repr(found), found._repr_html_()):
        assert "secret" not in shown
        assert "Temporary (In-memory)" in shown
        assert "ca.pem" in shown


def test_a_temporary_one_makes_contexts_in_which_both_sides_prove_themselves() -> None:
    pytest.importorskip("cryptography")
    found = Security.temporary()
    asked = found.get_connection_args("client")
    context = asked["ssl_context"]
    assert asked["require_encryption"] is True
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, False)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert found.get_listen_args("scheduler")["ssl_context"].verify_mode == ssl.CERT_REQUIRED
    with pytest.raises(TypeError, match="tls_ca_file"):
        Security.temporary(tls_ca_file="x")


def test_a_client_takes_one_that_requires_nothing_and_refuses_the_other() -> None:
    with (
        dask.config.set({"distributed.comm.require-encryption": None}),
        Client(processes=False, n_workers=1, dashboard_address=None, security=Security()) as client,
    ):
        assert client.submit(abs, -1).result() == 1
    with pytest.raises(UnsupportedOption, match="TLS"):
        Client(processes=False, security=Security(require_encryption=True))
