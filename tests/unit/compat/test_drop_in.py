"""The distribution `distributed` that leads to shoal: a wheel, and what is said of it."""

import base64
import hashlib
import zipfile
from pathlib import Path

import dask

from shoal.compat import drop_in, installing
from shoal.version import DROP_IN_MARK


def test_a_wheel_has_every_module_and_says_what_it_holds(tmp_path: Path) -> None:
    wheel = drop_in.write_wheel(tmp_path)
    version = dask.__version__.partition("+")[0]
    assert wheel.name == f"distributed-{version}+shoal-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        notes = f"distributed-{version}+shoal.dist-info"
        record = archive.read(f"{notes}/RECORD").decode().splitlines()
        metadata = archive.read(f"{notes}/METADATA").decode()
        for line in record:
            path, digest, length = line.rsplit(",", 2)
            if not digest:
                assert path.endswith("RECORD")
                continue
            text = archive.read(path)
            found = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode().rstrip("=")
            assert (digest, length) == (f"sha256={found}", str(len(text)))
    assert set(drop_in.modules()) < names
    assert len(record) == len(names)
    assert f"Version: {version}+shoal\n" in metadata
    assert "Requires-Dist: shoal\n" in metadata


def test_what_is_there_is_said_with_what_to_do() -> None:
    current = drop_in.version()
    ours = installing.Status("/x/distributed/__init__.py", True, current)
    assert ours.is_current
    assert str(ours) == f"`distributed` leads to shoal, version {current} ({ours.origin})"
    for other in (
        installing.Status("", False, ""),
        installing.Status(ours.origin, False, current.partition("+")[0]),
        installing.Status(ours.origin, True, "1.0+shoal"),
    ):
        assert not other.is_current
        assert "shoal dropin enable" in str(other)


def test_it_looks_without_importing() -> None:
    found = installing.status()
    assert found.is_ours
    with open(found.origin, encoding="utf-8") as module:
        assert DROP_IN_MARK in module.readline()
