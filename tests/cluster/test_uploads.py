"""Files that users send to workers: importable in tasks, also on workers that come later."""

import importlib
import sys
import zipfile
from pathlib import Path

import pytest

from shoal import Client
from shoal.client.errors import SchedulerCanNotImport
from tests.cluster.faces import ask


@pytest.fixture(autouse=True)
def _modules_as_before():
    """Workers may be in this process."""
    modules = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]


def value_of(name):
    return importlib.import_module(name).value


def folder_of(dask_scheduler):
    return dask_scheduler.local_directory


def test_a_module_is_there_before_the_next_task_and_anew_when_it_is_sent_again(
    play_in_processes, tmp_path
):
    async def scenario(client):
        path = tmp_path / "sent_module.py"
        for value in (1, 2):
            path.write_text(f"value = {value}\ndef get():\n    return value\n")
            await ask(client.upload_file(path))
            tasks = client.map(value_of, ["sent_module"] * 4, pure=False)
            assert await ask(client.gather(tasks)) == [value] * 4

    play_in_processes(scenario)


def test_a_function_of_a_module_that_is_sent_again_is_looked_up_anew(
    play_in_processes, tmp_path, monkeypatch
):
    """The client calls it by the same name, and has not loaded it anew itself."""
    monkeypatch.syspath_prepend(str(tmp_path))

    async def scenario(client):
        path = tmp_path / "sent_functions.py"
        path.write_text("def get():\n    return 1\n")
        await ask(client.upload_file(str(path)))
        get = importlib.import_module("sent_functions").get
        assert await ask(client.submit(get, pure=False).result()) == 1
        path.write_text("def get():\n    return 2\n")
        await ask(client.upload_file(str(path)))
        assert await ask(client.submit(get, pure=False).result()) == 2

    play_in_processes(scenario)


def test_archives_and_folders_are_importable_and_other_files_are_in_the_worker_s_folder(
    play_in_processes, tmp_path
):
    folder = tmp_path / "sent_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("value = 3")
    with zipfile.ZipFile(tmp_path / "sent.zip", "w") as archive:
        archive.writestr("sent_inside.py", "value = 4")
    (tmp_path / "words.txt").write_text("five")

    def read(dask_worker):
        with open(f"{dask_worker.local_directory}/words.txt") as opened:
            return opened.read()

    async def scenario(client):
        for name in ("sent_package", "sent.zip", "words.txt"):
            await ask(client.upload_file(tmp_path / name))
        assert await ask(client.submit(value_of, "sent_package").result()) == 3
        assert await ask(client.submit(value_of, "sent_inside").result()) == 4
        assert set((await ask(client.run(read))).values()) == {"five"}

    play_in_processes(scenario)


def test_what_a_module_raises_is_raised_here_and_a_missing_file_is_named(play, tmp_path):
    async def scenario(client):
        path = tmp_path / "sent_failing.py"
        path.write_text("1 / 0")
        with pytest.raises(ZeroDivisionError):
            await ask(client.upload_file(str(path)))
        await ask(client.upload_file(str(path), load=False))
        with pytest.raises(FileNotFoundError, match="no file and no folder"):
            await ask(client.upload_file(str(tmp_path / "missing.py")))
        assert await ask(client.submit(len, "abc").result()) == 3

    play(scenario)


def test_workers_that_come_later_have_the_file_before_their_first_task(tmp_path):
    path = tmp_path / "sent_early.py"
    path.write_text("value = 6")
    with Client(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
    ) as client:
        client.upload_file(str(path))
        client.cluster.scale(0)
        future = client.submit(value_of, "sent_early")
        client.cluster.scale(1)
        assert future.result() == 6


def test_a_scheduler_that_lacks_what_a_module_needs_is_no_obstacle(play_in_processes, tmp_path):
    (tmp_path / "sent_for_workers.py").write_text(
        "from shoal import get_worker\n"
        "try:\n"
        "    value = get_worker().nthreads\n"
        "except ValueError:\n"
        "    raise ImportError('there is no worker here') from None\n"
    )

    async def scenario(client):
        with pytest.warns(SchedulerCanNotImport, match="no worker here. Tasks have it"):
            await ask(client.upload_file(tmp_path / "sent_for_workers.py"))
        assert await ask(client.submit(value_of, "sent_for_workers").result()) == 1

    play_in_processes(scenario)


def test_the_scheduler_has_it_too(play_in_processes, tmp_path):
    (tmp_path / "sent_to_all.py").write_text("value = 7")
    (tmp_path / "sent_folder").mkdir()
    (tmp_path / "sent_folder" / "__init__.py").write_text("value = 8")
    folders = []

    async def scenario(client):
        for name in ("sent_to_all.py", "sent_folder"):
            await ask(client.upload_file(tmp_path / name))
        assert await ask(client.run_on_scheduler(value_of, "sent_to_all")) == 7
        folder = Path(await ask(client.run_on_scheduler(folder_of)))
        assert (folder / "sent_to_all.py").read_text() == "value = 7"
        folders.append(folder)
        assert await ask(client.run_on_scheduler(value_of, "sent_folder")) == 8

    play_in_processes(scenario)
    assert not folders[0].exists()  # it goes with the scheduler
