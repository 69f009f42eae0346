"""Preloads: what may be one, in which order it is called, and that its errors stop nobody."""

import asyncio
import logging
import sys
import urllib.error
import urllib.request
from io import BytesIO
from types import SimpleNamespace

import pytest

from shoal.observe import preloading
from shoal.observe.errors import PreloadFailed
from shoal.observe.preloading import Preload, process_preloads

TEXT = """
def dask_setup(service):
    service.calls.append("setup")

async def dask_teardown(service):
    service.calls.append("teardown")
"""


def live(service, preload, argv=(), **options):
    """All of a service's life, as far as its preloads go."""

    async def play():
        preloads = process_preloads(service, preload, argv, **options)
        await preloads.start()
        await preloads.teardown()
        return preloads

    return asyncio.run(play())


@pytest.fixture
def service():
    return SimpleNamespace(calls=[])


@pytest.fixture
def heard(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("shoal"), "propagate", True)
    caplog.set_level(logging.INFO, "shoal.preloading")
    return caplog


def test_a_text_is_executed_and_its_functions_are_called(service):
    (preload,) = live(service, TEXT)
    assert isinstance(preload, Preload)
    assert service.calls == ["setup", "teardown"]


def test_a_module_without_functions_is_only_imported(service):
    assert len(live(service, ["json", "this_is = 'text'"])) == 2
    assert service.calls == []


def test_a_file_is_imported_from_the_folder_of_its_service(service, tmp_path):
    source = tmp_path / "shoal_preload_of_a_test.py"
    source.write_text(TEXT)
    folder = tmp_path / "folder"
    folder.mkdir()
    try:
        (preload,) = live(service, [str(source)], file_dir=str(folder))
        assert preload.module.__file__ == str(folder / source.name)
        source.write_text("ANSWER = 42\n")
        (preload,) = live(service, str(source), file_dir=str(folder))
        assert preload.module.ANSWER == 42
    finally:
        sys.modules.pop("shoal_preload_of_a_test", None)
        sys.path.remove(str(folder))
    assert service.calls == ["setup", "teardown"]


def test_a_file_is_whole_for_those_who_read_it_as_another_service_loads_it(service, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    given = tmp_path / "begun_together.py"
    given.write_text(TEXT)
    live(service, str(given), file_dir=str(folder))
    with open(folder / given.name) as reading:
        given.write_text(f"{TEXT}# and a line more")
        live(service, str(given), file_dir=str(folder))
        assert reading.read() == TEXT
    assert [path.name for path in folder.glob("*.py*")] == [given.name]


def test_a_command_is_given_its_arguments(service):
    text = """
import click

@click.command()
@click.argument("word")
@click.option("--twice", is_flag=True)
async def dask_setup(service, word, twice):
    service.calls.append((word, twice))
"""
    live(service, text, ["hello", "--twice"])
    live(service, [text, text], [["one"], ["two", "--twice"]])
    assert service.calls == [("hello", True), ("one", False), ("two", True)]


def test_as_many_lists_of_arguments_as_preloads(service):
    with pytest.raises(PreloadFailed, match="2 preloads, and 1 lists"):
        process_preloads(service, ["json", "os"], [["one"]])


def test_what_functions_raise_is_logged_and_stops_nobody(service, heard):
    text = "def dask_setup(service):\n    raise LookupError(123)\ndask_teardown = dask_setup"
    live(service, [text, TEXT])
    assert service.calls == ["setup", "teardown"]
    assert heard.text.count("LookupError: 123") == 2


def test_what_a_preload_itself_raises_is_for_whoever_makes_the_service(service):
    with pytest.raises(ZeroDivisionError):
        process_preloads(service, "1 / 0", ())
    with pytest.raises(ModuleNotFoundError):
        process_preloads(service, "shoal_no_such_module", ())
    with pytest.raises(PreloadFailed, match="no such file"):
        process_preloads(service, "nowhere.py", ())


def test_a_download_is_tried_again_where_the_server_is_busy(service, heard, monkeypatch):
    asked = []

    def urlopen(url, timeout):
        asked.append(url)
        if len(asked) == 1:
            raise urllib.error.HTTPError(url, 503, "busy", {}, BytesIO())
        return BytesIO(TEXT.encode())

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    monkeypatch.setattr(preloading, "PAUSE_SECONDS", 0.0)
    live(service, "http://example.com/preload")
    assert asked == ["http://example.com/preload"] * 2
    assert service.calls == ["setup", "teardown"]
    assert "Downloading preload at http://example.com/preload" in heard.text


def test_a_download_that_is_not_there_is_not_tried_again(service, monkeypatch):
    asked = []

    def urlopen(url, timeout):
        asked.append(url)
        raise urllib.error.HTTPError(url, 404, "not found", {}, BytesIO())

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    with pytest.raises(urllib.error.HTTPError):
        process_preloads(service, "https://example.com/preload", ())
    assert len(asked) == 1


def test_what_was_not_started_is_not_torn_down(service):
    preloads = process_preloads(service, TEXT, ())
    asyncio.run(preloads.teardown())
    assert service.calls == []


def test_a_teardown_that_takes_too_long_is_cut_short(service, heard):
    endless = "import asyncio\nasync def dask_teardown(service):\n    await asyncio.Event().wait()"

    async def play():
        preloads = process_preloads(service, [endless, TEXT], ())
        await preloads.start()
        await asyncio.wait_for(preloads.teardown(0.0), 30)

    asyncio.run(play())
    assert heard.text.count("is cut short") == 1
    assert service.calls == ["setup", "teardown"]  # which takes no time
