"""Texts, logs, files and options, as old programs make them."""

import io
import json
import logging
import sys
import zipfile
from pathlib import Path

import click
import dask
import pytest

from shoal.compat import commanding, files, logs, texts
from shoal.observe.tables import asciitable


def test_a_table_is_as_wide_as_its_entries() -> None:
    assert asciitable(["a", "bb"], [("100", 2)]).splitlines() == [
        "+-----+----+", "| a   | bb |", "+-----+----+", "| 100 | 2  |", "+-----+----+",
    ]  # fmt: skip


def test_the_address_of_a_page_is_written_as_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHO", "me")
    with dask.config.set({"distributed.dashboard.link": "{scheme}://{host}/{WHO}/{port}"}):
        assert texts.format_dashboard_link("h", 1) == "http://h/me/1"


def test_addresses_of_pages_are_read() -> None:
    assert texts.clean_dashboard_address(":1,x:2") == [
        {"address": "", "port": 1},
        {"address": "x", "port": 2},
    ]
    assert texts.clean_dashboard_address([3, "4"], "1.2.3.4") == [
        {"address": "1.2.3.4", "port": 3},
        {"address": "1.2.3.4", "port": 4},
    ]


def test_what_an_object_is_can_be_said_in_json() -> None:
    class Node:
        def __init__(self) -> None:
            self.other: Node | None = None

        def _to_dict_no_nest(self, exclude: object = ()) -> dict[str, object]:
            return {"other": self.other}

        def __repr__(self) -> str:
            return "<node>"

    node = Node()
    node.other = Node()
    circle: list[object] = []
    circle.append(circle)
    told = texts.recursive_to_dict({"a": {1}, "n": node, "c": circle, 5: (None, 1.5)})
    assert told == {"a": [1], "n": {"other": "<node>"}, "c": ["[[...]]"], 5: [None, 1.5]}
    json.dumps(told)


def test_long_errors_are_cut_and_short_ones_are_not() -> None:
    short, long = ValueError("x"), ValueError("x" * 100)
    assert texts.truncate_exception(short, 10) is short
    assert str(texts.truncate_exception(long, 10)).count("x") == 10


def test_a_file_that_is_not_whole_is_waited_for_or_given_up(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(TimeoutError, match=r"x\.json could not be read"):
        texts.json_load_robust(path, timeout=0)
    path.write_text('{"a": 1}')
    assert texts.json_load_robust(path) == {"a": 1}


def test_a_slow_block_is_warned_about() -> None:
    with (
        pytest.warns(UserWarning, match=r"it took \d\.\d{3} s"),
        texts.warn_on_duration("0s", "it took {duration:.3f} s"),
    ):
        pass


def test_things_have_their_colour_and_mixed_ones_an_order() -> None:
    assert texts.color_of("x") == texts.color_of("x") in texts.palette
    assert texts.TupleComparable(None) < texts.TupleComparable(1) < texts.TupleComparable((1, 2))
    with pytest.raises(ValueError, match="neither"):
        texts.TupleComparable("x")
    assert texts.url_escape("a/b c") == "a%2Fb+c"


def test_logs_are_kept_limited_and_shown() -> None:
    logger = logging.getLogger("shoal.test.limited")
    logger.propagate = False
    handler = logs.DequeHandler(n=2)
    limiter = logs.RateLimiterFilter("again", rate="1h")
    logger.addHandler(handler)
    logger.addFilter(limiter)
    for word in ("again 1", "again 2", "other"):
        logger.error(word)
    assert [record.getMessage() for record in handler.deque] == ["again 1", "other"]
    limiter.reset_timer("shoal.test.limited")
    logger.error("again 3")
    assert handler.deque[-1].getMessage() == "again 3"
    logs.DequeHandler.clear_all_instances()
    assert not handler.deque
    page = logs.Logs({"b": logs.Log("<1>"), "a": logs.Log("2")})._repr_html_()
    assert page.index("a</summary>") < page.index("b</summary>")
    assert "&lt;1&gt;" in page


def test_a_logger_is_silenced_for_a_block() -> None:
    logger = logging.getLogger("shoal.quiet")
    handler = logging.StreamHandler(io.StringIO())
    logger.addHandler(handler)
    try:
        with logs.silence_logging_cmgr("error", "distributed.quiet"):
            assert handler.level == logging.ERROR
        assert handler.level == logging.NOTSET
        logs.reset_logger_locks()
        assert handler.lock is not None
    finally:
        logger.removeHandler(handler)


def test_blocks_of_a_file_end_with_the_delimiter() -> None:
    text = b"Alice, 100\nBob, 200\nCharlie, 300"
    whole = io.BytesIO(text)
    assert files.read_block(whole, 0, 13) == b"Alice, 100\nBo"
    assert files.read_block(whole, 0, 13, delimiter=b"\n") == b"Alice, 100\nBob, 200\n"
    assert files.read_block(whole, 10, 10, delimiter=b"\n") == b"Bob, 200\nCharlie, 300"
    parts = [files.read_block(whole, at, 7, delimiter=b"\n") for at in range(0, len(text), 7)]
    assert b"".join(parts) == text


def test_modules_of_files_and_archives_are_loaded_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    plain = tmp_path / "shoal_plain.py"
    plain.write_text("x = 1\n")
    assert [module.x for module in files.import_file(str(plain))] == [1]
    plain.write_text("x = 22\n")
    assert [module.x for module in files.import_file(str(plain))] == [22]
    archive = tmp_path / "some.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("shoal_zipped/__init__.py", "from shoal_zipped.inner import y\n")
        opened.writestr("shoal_zipped/inner.py", "y = 3\n")
    assert [module.y for module in files.import_file(str(archive))] == [3]
    assert files.import_file(str(tmp_path / "no.txt")) == []


def test_buffers_become_bytes_without_a_copy_if_they_can() -> None:
    whole = bytearray(b"abcdef")
    view = files.ensure_memoryview(memoryview(whole).cast("H"))
    assert (view.format, view.nbytes, view.obj) == ("B", 6, whole)
    assert bytes(files.ensure_memoryview(memoryview(whole)[::2])) == b"ace"
    assert files.ensure_memoryview(b"").nbytes == 0
    assert files.get_fileno_limit() > 0


@click.command()
@click.option("--nworkers", type=int)
@click.option("--nanny/--no-nanny", "nanny")
def command(nworkers: int, nanny: bool) -> None:
    """Nothing."""


def test_options_are_written_as_a_command_line_takes_them() -> None:
    class Thing:
        def __init__(self, name: str) -> None:
            self.name = name

    assert commanding.cli_keywords({"x": 123, "save_file": "a b"}) == [
        "--x", "123", "--save-file", '"a b"',
    ]  # fmt: skip
    assert commanding.command_has_keyword(command, "no_nanny")
    assert commanding.command_has_keyword("shoal.cli.worker", "xyz") is False
    assert commanding.cli_keywords({"name": "n"}, Thing) == ["--name", "n"]
    with pytest.raises(ValueError, match="Thing does not support keyword nworkers"):
        commanding.cli_keywords({"nworkers": 1}, Thing)
