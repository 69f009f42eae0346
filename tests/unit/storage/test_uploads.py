"""Files that were sent: kept whole, importable, and imported anew."""

import importlib
import io
import os
import stat
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.storage.errors import NotAFileName
from shoal.storage.uploads import (
    add_to_path,
    forget_path,
    keep_file,
    keep_folder,
    pack_folder,
)


@pytest.fixture(autouse=True)
def _modules_as_before(tmp_path: Path) -> Iterator[None]:
    modules, path = dict(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]
    sys.path[:] = path


def test_a_module_is_importable_and_imported_anew_in_place(tmp_path: Path) -> None:
    assert keep_file(str(tmp_path), "sent_once.py", b"value = 1") == ["sent_once"]
    module = importlib.import_module("sent_once")
    keep_file(str(tmp_path), "sent_once.py", b"value = 2")  # of the same second and size
    assert importlib.import_module("sent_once") is module
    assert module.value == 2
    assert [path.name for path in tmp_path.glob(".sent*")] == []


def test_a_file_that_is_not_to_be_loaded_is_only_kept(tmp_path: Path) -> None:
    assert keep_file(str(tmp_path), "not_loaded.py", b"1 / 0", load=False) == []
    assert (tmp_path / "not_loaded.py").read_bytes() == b"1 / 0"
    assert keep_file(str(tmp_path), "plain.txt", b"words") == []
    assert "not_loaded" not in sys.modules


def test_an_error_of_the_module_is_raised_and_the_file_stays(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        keep_file(str(tmp_path), "failing.py", b"1 / 0")
    assert (tmp_path / "failing.py").exists()


@pytest.mark.parametrize("ending", ["zip", "egg", "pyz"])
def test_archives_are_imported_from_the_inside_and_anew(tmp_path: Path, ending: str) -> None:
    for value in (1, 2):
        content = archive({"packed/__init__.py": "", "packed/part.py": f"value = {value}"})
        assert keep_file(str(tmp_path), f"packed.{ending}", content) == ["packed"]
        assert importlib.import_module("packed.part").value == value


def test_a_folder_travels_without_what_is_skipped(tmp_path: Path) -> None:
    home = tmp_path / "home" / "sent_folder"
    (home / "tests").mkdir(parents=True)
    (home / "__init__.py").write_text("value = 1")
    (home / "tests" / "test_it.py").write_text("")
    (home / "left_out.py").write_text("")
    content = pack_folder(str(home), skip=[lambda path: path.endswith("left_out.py")])
    there = tmp_path / "there"
    for value in (1, 2):
        (home / "__init__.py").write_text(f"value = {value}")
        content = pack_folder(str(home), skip=[lambda path: path.endswith("left_out.py")])
        path = keep_folder(str(there), "sent_folder", content)
        assert importlib.import_module("sent_folder").value == value
    assert sorted(p.name for p in Path(path).iterdir() if p.suffix) == ["__init__.py"]
    assert not (Path(path) / "tests").exists()


def test_a_folder_that_is_sent_again_is_imported_anew_by_whatever_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # as it is for users
    home = tmp_path / "home" / "sent_again"
    home.mkdir(parents=True)
    for value in (1, 2):  # of the same second and size
        (home / "__init__.py").write_text(f"value = {value}")
        (home / "sent_beside.py").write_text(f"value = {value}")
        path = keep_folder(str(tmp_path / "there"), "sent_again", pack_folder(str(home)))
        os.utime(Path(path) / "__init__.py", (10**9, 10**9))
        os.utime(Path(path) / "sent_beside.py", (10**9, 10**9))
        add_to_path(path)
        assert importlib.import_module("sent_again").value == value
        assert importlib.import_module("sent_beside").value == value


def test_scripts_can_be_run_and_the_oldest_files_travel(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name, mode in (("script.sh", 0o4755), ("words.txt", 0o444)):
        (home / name).write_text("#!/bin/sh\n")
        (home / name).chmod(mode)
        os.utime(home / name, (0, 0))
    for _ in range(2):
        there = Path(keep_folder(str(tmp_path / "there"), "sent", pack_folder(str(home))))
    script, words = (there / "script.sh").stat().st_mode, (there / "words.txt").stat().st_mode
    assert script & stat.S_IXUSR
    assert not script & stat.S_ISUID
    assert not words & stat.S_IXUSR
    assert words & stat.S_IWUSR


def test_an_archive_writes_nothing_outside_its_folder(tmp_path: Path) -> None:
    """By paths that lead out, from the root, or by a link that is followed by what comes next."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        link = zipfile.ZipInfo("way")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        opened.writestr(link, str(tmp_path))
        opened.writestr("../out.txt", "")
        opened.writestr("/root.txt", "")
    there = Path(keep_folder(str(tmp_path / "there"), "sent", packed.getvalue()))
    assert sorted(path.name for path in there.iterdir()) == ["out.txt", "root.txt", "way"]
    assert not (there / "way").is_symlink()
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


@pytest.mark.parametrize("name", ["", "..", "a/b.py", "/etc/passwd"])
def test_a_name_with_a_path_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotAFileName, match="leads out"):
        keep_file(str(tmp_path), name, b"")
    with pytest.raises(NotADirectoryError):
        pack_folder(str(tmp_path / "missing"))


def test_a_folder_that_goes_is_looked_at_no_more(tmp_path: Path) -> None:
    keep_file(str(tmp_path), "passing.py", b"")
    keep_file(str(tmp_path), "passing.zip", archive({"inside_of.py": ""}))
    forget_path(str(tmp_path))
    assert not [entry for entry in sys.path if entry.startswith(str(tmp_path))]


def archive(files: dict[str, str]) -> bytes:
    """A zip file of these."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        for name, text in files.items():
            opened.writestr(name, text)
    return packed.getvalue()
