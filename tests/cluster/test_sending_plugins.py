"""Files, folders, output and logs: plugins that come with the house."""

import importlib
import logging
import sys

import pytest

from shoal import Client, ForwardOutput, LocalCluster, UploadDirectory, UploadFile
from shoal.observe.plugins.forwarding import ForwardLoggingPlugin
from shoal.observe.plugins.sending import SchedulerUploadFile
from tests.cluster.conftest import SMALL


def answer_of(module):
    return importlib.import_module(module).ANSWER


def is_known(module):
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "shoal_test_package"
    (folder / "tests").mkdir(parents=True)
    (folder / "__init__.py").write_text("ANSWER = 42\n")
    (folder / "inside.py").write_text("ANSWER = 43\n")
    (folder / "tests" / "left_out.py").write_text("")
    return folder


def test_a_file_is_sent_to_workers_that_come_late_too(tmp_path):
    module = tmp_path / "shoal_test_module.py"
    module.write_text("ANSWER = 41\n")
    with LocalCluster(**SMALL) as cluster, Client(cluster) as client:
        client.register_plugin(UploadFile(str(module)))
        client.register_plugin(SchedulerUploadFile(str(module)))
        cluster.scale(3)
        client.wait_for_workers(3)
        assert set(client.run(answer_of, "shoal_test_module").values()) == {41}
        assert client.run_on_scheduler(answer_of, "shoal_test_module") == 41
        assert client.submit(answer_of, "shoal_test_module").result() == 41


@pytest.mark.parametrize("mode", ["workers", "scheduler", "all"])
def test_a_folder_is_sent_to_whom_it_is_for(package, mode):
    with LocalCluster(**SMALL) as cluster, Client(cluster) as client:
        client.register_plugin(UploadDirectory(str(package), mode=mode, update_path=mode == "all"))
        at_workers = set(client.run(is_known, "shoal_test_package").values())
        at_scheduler = client.run_on_scheduler(is_known, "shoal_test_package")
        assert (at_workers, at_scheduler) == ({mode != "scheduler"}, mode != "workers")
        assert set(client.run(is_known, "inside").values()) == {mode == "all"}
        assert client.run_on_scheduler(is_known, "inside") == (mode == "all")
        assert not any(client.run(is_known, "shoal_test_package.tests.left_out").values())


def test_a_folder_that_is_for_nobody_is_refused(package):
    with pytest.raises(ValueError, match=r"'nobody' is not supported"):
        UploadDirectory(str(package), mode="nobody")


def test_output_of_workers_is_told_line_by_line():
    heard = []
    with LocalCluster(**SMALL) as cluster, Client(cluster) as client:
        client.subscribe_topic("print", lambda event: heard.append(event[1]["args"][0]))
        client.register_plugin(ForwardOutput())
        client.submit(write, "one\ntwo").result()
        client.run(flush)
        client.unregister_worker_plugin(next(iter(client.run(plugin_names).values()))[0])
        client.log_event("print", {"args": ("the end",)})
        while "the end" not in heard:
            client.run(int)
    assert [text for text in heard if text != "the end"] == ["one\n", "two"]


def write(text):
    sys.stdout.write(text)


def flush():
    sys.stdout.flush()


def plugin_names(dask_worker):
    return list(dask_worker.plugins)


def test_logs_of_workers_are_told_under_a_topic():
    heard = []
    with LocalCluster(**SMALL) as cluster, Client(cluster) as client:
        client.subscribe_topic("ours", lambda event: heard.append(event[1]))
        client.register_plugin(ForwardLoggingPlugin("shoal_test_logger", logging.ERROR, "ours"))
        client.submit(log, "too quiet", logging.WARNING).result()
        client.submit(log, "loud enough", logging.ERROR).result()
        while not any(isinstance(record, dict) for record in heard):
            client.run(int)
    assert [record["msg"] for record in heard] == ["loud enough"]


def log(text, level):
    logging.getLogger("shoal_test_logger").log(level, text)
