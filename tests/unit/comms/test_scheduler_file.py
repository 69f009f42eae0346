"""The scheduler file: whole or not at all, and for its owner alone if it holds a token."""

import json
import os

import pytest

from shoal.comms.errors import TokenFileError
from shoal.comms.scheduler_file import (
    Found,
    read_scheduler_file,
    remove_scheduler_file,
    write_scheduler_file,
)

ADDRESS = "tcp://10.0.0.1:8786"


@pytest.fixture
def path(tmp_path):
    where = str(tmp_path / "scheduler.json")
    write_scheduler_file(where, {"type": "Scheduler", "address": ADDRESS}, b"secret")
    return where


def test_it_tells_address_and_token_and_is_ours_alone(path):
    assert read_scheduler_file(path) == Found(ADDRESS, b"secret")
    assert os.stat(path).st_mode & 0o777 == 0o600
    with open(path) as opened:
        assert json.load(opened)["type"] == "Scheduler"


def test_it_is_replaced_at_once_and_nothing_lies_beside_it(path):
    write_scheduler_file(path, {"address": "tcp://10.0.0.2:1"}, b"other")
    assert read_scheduler_file(path) == Found("tcp://10.0.0.2:1", b"other")
    assert os.listdir(os.path.dirname(path)) == ["scheduler.json"]


def test_a_token_that_others_may_read_is_refused(path):
    os.chmod(path, 0o644)
    with pytest.raises(TokenFileError, match="chmod 600"):
        read_scheduler_file(path)


def test_a_file_without_a_token_is_good_for_the_address_whoever_may_read_it(tmp_path):
    path = tmp_path / "upstream.json"
    path.write_text(json.dumps({"type": "Scheduler", "address": ADDRESS}))
    path.chmod(0o644)
    assert read_scheduler_file(str(path)) == Found(ADDRESS, None)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"address": 5}', "5"])
def test_a_file_that_says_nothing_yet_is_as_good_as_none(tmp_path, text):
    path = tmp_path / "half.json"
    assert read_scheduler_file(str(path)) is None
    path.write_text(text)
    assert read_scheduler_file(str(path)) is None


def test_only_the_scheduler_that_wrote_it_last_removes_it(path):
    remove_scheduler_file(path, "tcp://10.0.0.9:1")
    assert os.path.exists(path)
    remove_scheduler_file(path, ADDRESS)
    assert not os.path.exists(path)
    remove_scheduler_file(path, ADDRESS)


def test_a_folder_that_is_not_there_is_an_error_and_leaves_nothing(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_scheduler_file(str(tmp_path / "no" / "file.json"), {}, b"secret")
