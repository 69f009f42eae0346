"""Tests' certificates, and configuration and clusters that use them."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any

import dask.config
import pytest

from shoal.compat.security import Security
from shoal.testing.clusters import gen_cluster
from shoal.testing.surroundings import get_cert


def tls_config() -> dict[str, Any]:
    """Settings with a certificate for each role, which nobody is required to show."""
    authority, key_and_cert = get_cert("tls-ca-cert.pem"), get_cert("tls-key-cert.pem")
    roles = {role: {"cert": key_and_cert} for role in ("client", "scheduler", "worker")}
    return {"distributed": {"comm": {"tls": {"ca-file": authority, **roles}}}}


def tls_only_config() -> dict[str, Any]:
    """The same, and everybody is."""
    settings = tls_config()
    settings["distributed"]["comm"]["require-encryption"] = True
    return settings


def tls_security() -> Security:
    """What `tls_config` says."""
    with dask.config.set(tls_config()):
        return Security()


def tls_only_security() -> Security:
    """What `tls_only_config` says."""
    with dask.config.set(tls_only_config()):
        found = Security()
    assert found.require_encryption
    return found


def gen_tls_cluster(**kwargs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """As `gen_cluster`, for tests of encrypted connections: those end with an UnsupportedOption, as
    services here encrypt nothing."""
    kwargs.setdefault("nthreads", [("tls://127.0.0.1", 1), ("tls://127.0.0.1", 2)])
    return gen_cluster(scheduler="tls://127.0.0.1", security=tls_only_security(), **kwargs)


def get_server_ssl_context(
    certfile: str = "tls-cert.pem",
    keyfile: str = "tls-key.pem",
    ca_file: str = "tls-ca-cert.pem",
) -> ssl.SSLContext:
    """What a listener needs that shows a certificate, and asks its peers for theirs."""
    return _context(ssl.Purpose.CLIENT_AUTH, certfile, keyfile, ca_file)


def get_client_ssl_context(
    certfile: str = "tls-cert.pem",
    keyfile: str = "tls-key.pem",
    ca_file: str = "tls-ca-cert.pem",
) -> ssl.SSLContext:
    """What a connector needs that shows a certificate; no host name is checked."""
    return _context(ssl.Purpose.SERVER_AUTH, certfile, keyfile, ca_file)


def xfail_ssl_issue5601() -> None:
    """End the running test as one that can't succeed, where no temporary certificates are made."""
    try:
        Security.temporary()
    except (ImportError, ssl.SSLError) as error:
        pytest.xfail(f"no temporary certificates can be made here: {error}")


def _context(purpose: ssl.Purpose, certfile: str, keyfile: str, ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context(purpose, cafile=get_cert(ca_file))
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(get_cert(certfile), get_cert(keyfile))
    return context
