"""Folders for what tasks leave on disk are one user's, tell whose they are, and are removed."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest

from shoal.storage.scratch import (
    Scratch,
    make_scratch,
    remove_scratch,
    remove_scratch_of,
    scratch_parent,
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path) -> Iterator[None]:
    with dask.config.set({"temporary-directory": str(tmp_path)}):
        yield


def test_a_folder_is_below_the_setting_and_others_can_not_enter_it(tmp_path: Path) -> None:
    folder = make_scratch()
    assert Path(folder).parent == scratch_parent()
    assert scratch_parent().is_relative_to(tmp_path)
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert make_scratch() != folder


def test_the_last_folder_takes_its_parent_along(tmp_path: Path) -> None:
    first, second = make_scratch(), make_scratch()
    Path(first, "file").write_text("of a task")
    remove_scratch(first)
    assert os.listdir(scratch_parent()) == [os.path.basename(second)]
    remove_scratch(second)
    remove_scratch(second)
    assert not list(tmp_path.iterdir())


def test_what_another_process_has_left_goes_and_the_rest_stays() -> None:
    ours = make_scratch()
    name = os.path.basename(ours)
    pid = str(os.getpid())
    for other in (f"{pid}0", f"1{pid}"):
        (scratch_parent() / name.replace(pid, other)).mkdir()
    remove_scratch_of(int(f"{pid}0"), scratch_parent())
    assert sorted(os.listdir(scratch_parent())) == sorted([name, name.replace(pid, f"1{pid}")])
    remove_scratch_of(os.getpid(), scratch_parent())
    assert not os.path.exists(ours)


def test_there_may_be_nothing_to_remove() -> None:
    remove_scratch_of(os.getpid(), scratch_parent())
    assert not scratch_parent().exists()


def test_the_folders_of_another_process_are_where_its_own_configuration_says(
    tmp_path: Path,
) -> None:
    theirs = {"temporary-directory": str(tmp_path / "theirs")}
    assert scratch_parent(theirs).parent == tmp_path / "theirs"
    assert scratch_parent().parent == tmp_path


def test_where_a_folder_will_be_is_known_before_it_is_made(tmp_path: Path) -> None:
    scratch = Scratch(None)
    where = scratch.where
    assert not list(tmp_path.iterdir())
    scratch.remove()
    assert scratch.path() == where == scratch.where
    assert os.path.isdir(where)
    scratch.remove()
    assert not list(tmp_path.iterdir())
    given = Scratch(str(tmp_path))
    assert given.where == given.path() == str(tmp_path)
    given.remove()
    assert tmp_path.is_dir()
