"""Tests' certificates, and configuration and clusters that use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.config

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
