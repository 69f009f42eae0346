"""Tokens: found where they should be, and only in places that are ours alone."""

import stat
from pathlib import Path

import pytest

from shoal.comms import TokenFileError, new_token
from shoal.comms.authority import Authority

ADDRESS = "tcp://127.0.0.1:4711"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "run").mkdir(mode=0o700)
    return {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}


def test_a_service_of_this_process_is_found_by_address(environ: dict[str, str]) -> None:
    authority = Authority(environ)
    publication = authority.publish("127.0.0.1:4711", b"secret", file=False)
    assert authority.find(ADDRESS) == b"secret"
    assert authority.find("tcp://127.0.0.1:4712") is None
    publication.withdraw()
    assert authority.find(ADDRESS) is None


@pytest.mark.parametrize("address", [ADDRESS, "tcp://localhost:4711", "unix://@name"])
def test_another_process_of_this_user_finds_the_file_until_it_is_withdrawn(
    environ: dict[str, str], address: str
) -> None:
    publication = Authority(environ).publish(address, b"secret")
    assert Authority(environ).find(address) == b"secret"
    publication.withdraw()
    publication.withdraw()
    assert Authority(environ).find(address) is None
    assert list(Path(environ["XDG_RUNTIME_DIR"], "shoal").iterdir()) == []


def test_the_file_is_for_its_owner_alone(environ: dict[str, str]) -> None:
    Authority(environ).publish(ADDRESS, b"secret")
    directory = Path(environ["XDG_RUNTIME_DIR"], "shoal")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / "4711").stat().st_mode) == 0o600


def test_without_a_runtime_directory_the_state_directory_serves(environ: dict[str, str]) -> None:
    del environ["XDG_RUNTIME_DIR"]
    Authority(environ).publish(ADDRESS, b"secret")
    assert Path(environ["HOME"], ".local/state/shoal/4711").exists()
    assert Authority(environ).find(ADDRESS) == b"secret"


def test_a_service_elsewhere_is_not_taken_for_one_of_this_host(environ: dict[str, str]) -> None:
    """The same port on another machine has another token."""
    Authority(environ).publish(ADDRESS, b"secret")
    assert Authority(environ).find("tcp://192.0.2.77:4711") is None
    assert Authority(environ).find("tcp://elsewhere.example:4711") is None


def test_withdrawing_leaves_the_file_of_a_successor(environ: dict[str, str]) -> None:
    first = Authority(environ).publish(ADDRESS, b"first")
    Authority(environ).publish(ADDRESS, b"second")
    first.withdraw()
    assert Authority(environ).find(ADDRESS) == b"second"


def test_a_file_that_others_may_read_is_not_used(environ: dict[str, str]) -> None:
    Authority(environ).publish(ADDRESS, b"secret")
    path = Path(environ["XDG_RUNTIME_DIR"], "shoal", "4711")
    path.chmod(0o640)
    with pytest.raises(TokenFileError, match=r"mode 640.*chmod 600"):
        Authority(environ).find(ADDRESS)


def test_a_link_in_place_of_the_file_is_not_followed(environ: dict[str, str]) -> None:
    Authority(environ).publish(ADDRESS, b"secret")
    path = Path(environ["XDG_RUNTIME_DIR"], "shoal", "4711")
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))
    with pytest.raises(TokenFileError):
        Authority(environ).find(ADDRESS)


def test_a_directory_that_others_may_enter_is_passed_over(environ: dict[str, str]) -> None:
    directory = Path(environ["XDG_RUNTIME_DIR"], "shoal")
    directory.mkdir(mode=0o755)
    directory.chmod(0o755)
    Authority(environ).publish(ADDRESS, b"secret")
    assert list(directory.iterdir()) == []
    assert Path(environ["HOME"], ".local/state/shoal/4711").exists()


def test_the_variable_is_taken_out_of_the_environment(environ: dict[str, str]) -> None:
    environ["SHOAL_TOKEN"] = " from-variable\n"
    authority = Authority(environ)
    assert authority.find("tcp://192.0.2.77:1") == b"from-variable"
    assert "SHOAL_TOKEN" not in environ
    assert authority.find("tcp://192.0.2.77:1") == b"from-variable"


def test_the_named_file_comes_before_the_variable_and_both_before_the_user_token(
    environ: dict[str, str], tmp_path: Path
) -> None:
    assert Authority(environ).of_user(create=True) == Authority(environ).find("tcp://h:1")
    environ["SHOAL_TOKEN"] = "from-variable"
    (tmp_path / "mounted").write_text("from-file\n")
    environ["SHOAL_TOKEN_FILE"] = str(tmp_path / "mounted")
    authority = Authority(environ)
    assert authority.find("tcp://h:1") == b"from-file"
    del environ["SHOAL_TOKEN_FILE"]
    assert authority.find("tcp://h:1") == b"from-variable"


def test_a_named_file_that_is_missing_is_an_error_and_no_silent_fallback(
    environ: dict[str, str],
) -> None:
    environ["SHOAL_TOKEN_FILE"] = "/nowhere/token"
    with pytest.raises(TokenFileError, match="/nowhere/token"):
        Authority(environ).find(ADDRESS)


def test_the_user_token_is_made_once(environ: dict[str, str]) -> None:
    assert Authority(environ).of_user() is None
    token = Authority(environ).of_user(create=True)
    assert token is not None
    assert Authority(environ).of_user(create=True) == token
    path = Path(environ["HOME"], ".config/shoal/token")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_tokens_are_long_random_and_not_shown(environ: dict[str, str]) -> None:
    token = new_token()
    assert len(token) == 64
    assert token != new_token()
    publication = Authority(environ).publish(ADDRESS, token)
    assert token.decode() not in repr(publication)


def test_services_of_a_process_that_agree_have_one_token(tmp_path):
    authority = Authority({"HOME": str(tmp_path)})
    assert authority.of_services_here() is None
    authority.publish("tcp://127.0.0.1:1", b"x", file=False)
    authority.publish("tcp://127.0.0.1:2", b"x", file=False)
    assert authority.of_services_here() == b"x"
    authority.publish("tcp://127.0.0.1:3", b"y", file=False)
    assert authority.of_services_here() is None
