"""`Security`: which certificates who uses.  Connections here are not encrypted yet: clusters and
clients refuse one that requires it, and take one that does not as if there were none."""

from __future__ import annotations

import datetime
import html
import importlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import dask.config

_ROLES: Final = ("client", "scheduler", "worker")
_VERSIONS: Final = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
_CONFIGURED: Final = {None: None, 1.2: ssl.TLSVersion.TLSv1_2, 1.3: ssl.TLSVersion.TLSv1_3}
_VALID_DAYS: Final = 365
_KEY_BITS: Final = 2048
_SETTINGS: Final = "distributed.comm"


class Security:
    """Certificates and keys of a cluster's parts, and whether they are required.

    Each may be a path, or the text itself in PEM.  What is not given is looked up in the settings
    `distributed.comm.tls.*`.
    """

    __slots__ = (
        "extra_conn_args",
        "require_encryption",
        "tls_ca_file",
        "tls_ciphers",
        "tls_client_cert",
        "tls_client_key",
        "tls_max_version",
        "tls_min_version",
        "tls_scheduler_cert",
        "tls_scheduler_key",
        "tls_worker_cert",
        "tls_worker_key",
    )

    tls_ca_file: str | None
    tls_ciphers: str | None
    tls_min_version: ssl.TLSVersion
    tls_max_version: ssl.TLSVersion | None

    def __init__(self, require_encryption: bool | None = None, **kwargs: Any) -> None:
        """Read what is not given.

        Args:
            require_encryption: None: if anything is given.

        Raises:
            TypeError: an unknown parameter.
            ValueError: a version of TLS that is too old, or none.
        """
        unknown = sorted(set(kwargs) - set(self.__slots__))
        if unknown:
            raise TypeError(f"Unknown parameters: {unknown}")
        if require_encryption is None:
            require_encryption = dask.config.get(f"{_SETTINGS}.require-encryption", None)
        given = any(name != "extra_conn_args" for name in kwargs)
        self.require_encryption = given if require_encryption is None else require_encryption
        self.extra_conn_args: dict[str, Any] = dict(kwargs.pop("extra_conn_args", None) or {})
        for name in self.__slots__:
            if name.startswith("tls_"):
                setattr(self, name, self._value(name, kwargs))

    @staticmethod
    def _value(name: str, given: dict[str, Any]) -> Any:
        """One field: as given, else as configured."""
        words = name.split("_")[1:]
        section, last = (words[:1], words[1]) if words[0] in _ROLES else ([], "-".join(words))
        setting = ".".join([_SETTINGS, "tls", *section, last])
        if not name.endswith("_version"):
            return given.get(name, dask.config.get(setting, None))
        if name in given:
            value = given[name]
            if value is not None and value not in _VERSIONS:
                known = [*_VERSIONS, None]
                raise ValueError(f"{name}={value!r} is not supported, expected one of {known}")
        else:
            configured = dask.config.get(setting, None)
            if configured not in _CONFIGURED:
                raise ValueError(
                    f"{setting}={configured!r} is not supported, expected one of {[*_CONFIGURED]}"
                )
            value = _CONFIGURED[configured]
        return _VERSIONS[0] if value is None and name == "tls_min_version" else value

    @classmethod
    def temporary(cls, **kwargs: Any) -> Security:
        """One key and certificate for all roles, made now, valid for a year.

        Needs the package `cryptography`.  About 0.1 s.
        """
        key, certificate = _self_signed()
        made: dict[str, Any] = {"require_encryption": True, "tls_ca_file": certificate}
        for role in _ROLES:
            made |= {f"tls_{role}_key": key, f"tls_{role}_cert": certificate}
        twice = sorted(set(made) & set(kwargs))
        if twice:
            raise TypeError(f"a temporary {cls.__name__} makes its own {', '.join(twice)}")
        return cls(**made, **kwargs)

    def get_tls_config_for_role(self, role: str) -> dict[str, Any]:
        """`ca_file`, `ciphers`, `cert` and `key` of one role.

        Raises:
            ValueError: there is no such role.
        """
        if role not in _ROLES:
            raise ValueError(f"unknown role {role!r}, expected one of {', '.join(_ROLES)}")
        return {
            "ca_file": self.tls_ca_file,
            "ciphers": self.tls_ciphers,
            "cert": getattr(self, f"tls_{role}_cert"),
            "key": getattr(self, f"tls_{role}_key"),
        }

    def get_connection_args(self, role: str) -> dict[str, Any]:
        """What a connection that `role` makes needs; `ssl_context` is None without a certificate.

        Raises:
            ValueError: there is no such role.
        """
        return {
            "ssl_context": self._context(role, ssl.Purpose.SERVER_AUTH),
            "require_encryption": self.require_encryption,
            "extra_conn_args": self.extra_conn_args,
        }

    def get_listen_args(self, role: str) -> dict[str, Any]:
        """As `get_connection_args`, for listening."""
        return {
            "ssl_context": self._context(role, ssl.Purpose.CLIENT_AUTH),
            "require_encryption": self.require_encryption,
        }

    def _context(self, role: str, purpose: ssl.Purpose) -> ssl.SSLContext | None:
        """Both ends prove who they are by a certificate of the authority."""
        found = self.get_tls_config_for_role(role)
        if not found["ca_file"] or not found["cert"]:
            return None
        authority, ciphers = found["ca_file"], found["ciphers"]
        name = "cadata" if _is_text(authority) else "cafile"
        context = ssl.create_default_context(purpose, **{name: authority})
        context.verify_mode = ssl.CERT_REQUIRED
        context.check_hostname = False  # certificates are for roles: hosts come and go
        context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
        context.minimum_version = self.tls_min_version
        if self.tls_max_version is not None:
            context.maximum_version = self.tls_max_version
        _load(context, found["cert"], found["key"])
        if ciphers:
            context.set_ciphers(ciphers)
        return context

    def _shown(self) -> Iterator[tuple[str, object]]:
        """What is set, without secrets."""
        for name in sorted(self.__slots__):
            value = getattr(self, name)
            if value is None or value == {}:
                continue
            if name.endswith(("_file", "_cert", "_key")):
                local = f"Local ({os.path.abspath(value)})"
                value = "Temporary (In-memory)" if _is_text(value) else local
            elif name.endswith("_version"):
                value = int(value)
            yield name, value

    def __repr__(self) -> str:
        return f"Security({', '.join(f'{name}={value}' for name, value in self._shown())})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{name}</th><td>{html.escape(str(value))}</td></tr>"
            for name, value in self._shown()
        )
        return f"<h3>Security</h3><table>{rows}</table>"


def _is_text(value: str) -> bool:
    """Whether it is the thing itself, and not a path to it."""
    return "\n" in value


def _load(context: ssl.SSLContext, certificate: str, key: str | None) -> None:
    """`ssl` reads files only."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, value in (("certificate", certificate), ("key", key)):
            path = value
            if value is not None and _is_text(value):
                path = os.path.join(folder, name)
                Path(path).touch(mode=0o600)
                Path(path).write_text(value, encoding="utf-8")
            paths.append(path)
        assert paths[0] is not None
        context.load_cert_chain(paths[0], paths[1])


def _self_signed() -> tuple[str, str]:
    """A key and a certificate, in PEM."""
    try:
        x509: Any = importlib.import_module("cryptography.x509")
        primitives = "cryptography.hazmat.primitives"
        hashes: Any = importlib.import_module(f"{primitives}.hashes")
        serialization: Any = importlib.import_module(f"{primitives}.serialization")
        rsa: Any = importlib.import_module(f"{primitives}.asymmetric.rsa")
    except ImportError as error:
        raise ImportError(
            "Security.temporary needs the package cryptography: pip install cryptography"
        ) from error
    key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "dask-internal")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=_VALID_DAYS))
        .sign(key, hashes.SHA256())
    )
    key_text = key.private_bytes(
        encoding=serialization.Encoding.PEM,
        format=serialization.PrivateFormat.PKCS8,
        encryption_algorithm=serialization.NoEncryption(),
    )
    return key_text.decode(), certificate.public_bytes(serialization.Encoding.PEM).decode()
