"""What services have logged, and what workers log from now on."""

import logging
import threading

import pytest

from shoal import Client, LocalCluster
from tests.cluster.conftest import SMALL
from tests.cluster.faces import ask

SECONDS = 20
ONE = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None, "processes": True}


class Kept(logging.Handler):
    """Keeps records, and tells when there are enough."""

    def __init__(self, n=1):
        super().__init__()
        self.records, self._n, self._all = [], n, threading.Event()

    def emit(self, record):
        self.records.append(record)
        if len(self.records) >= self._n:
            self._all.set()

    def wait(self):
        assert self._all.wait(SECONDS)


@pytest.fixture
def kept():
    """What the logger `of.mine` is given here."""
    logger = logging.getLogger("of.mine")
    handler = Kept()
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def log(text, *args, name="of.mine", level=logging.WARNING):
    """In a task."""
    logging.getLogger(name).log(level, text, *args)


def log_error():
    """In a task, with a traceback."""
    try:
        raise ValueError("not this way")
    except ValueError:
        logging.getLogger("of.mine").exception("it was %s", "so")


def test_services_in_processes_remember_what_they_log():
    """INFO as well, though it is not shown."""
    with LocalCluster(**ONE) as cluster, Client(cluster) as client:
        client.submit(log, "hello %s", "you", name="distributed.worker").result()
        lines = client.get_scheduler_logs()
        assert all(level == "INFO" for level, _ in lines)
        assert any("has joined" in text for _, text in lines)
        assert client.get_scheduler_logs(1) == lines[:1]
        assert client.get_scheduler_logs(0) == ()
        ((address, lines),) = client.get_worker_logs(n=1).items()
        assert [(level, text[-9:]) for level, text in lines] == [("WARNING", "hello you")]
        assert list(client.get_worker_logs(workers=[address])) == [address]
        assert client.get_worker_logs(workers=["tcp://127.0.0.1:1"]) == {}
        assert list(client.get_worker_logs(nanny=True)) == [address]
        logs = cluster.get_logs()
        assert list(logs) == ["Cluster", "Scheduler", address]
        assert logs[address].endswith("hello you")
        assert "<details>" in logs._repr_html_()
        assert list(cluster.get_logs(cluster=False, workers=False)) == ["Scheduler"]
        assert list(cluster.get_logs(False, False, [address])) == [address]
        assert (
            client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.get_logs(n=1)[0])
            == (client.get_scheduler_logs(1)[0])
        )
        (stamped,) = client.run(
            lambda dask_worker: dask_worker.get_logs(timestamps=True)[0]
        ).values()
        assert stamped[0] > 1.7e9
        later = client.run(lambda dask_worker: dask_worker.get_logs(start=9e9))
        assert later == {address: []}


async def of_services(client):
    """In this process they share loggers."""
    logging.getLogger("distributed.worker").warning("by hand")
    logging.getLogger("distributed.scheduler").warning("by another hand")
    (level, text), *_ = await ask(client.get_scheduler_logs())
    assert (level, text.endswith("WARNING - by another hand")) == ("WARNING", True)
    logs = await ask(client.get_worker_logs(1))
    assert [lines[0][1].endswith("by hand") for lines in logs.values()] == [True, True]
    found = await ask(client.cluster.get_logs())
    assert {"Cluster", "Scheduler", *logs} == set(found)


def test_logs_can_be_asked_for_on_either_face(play):
    play(of_services)
    assert not logging.getLogger("shoal.scheduler").handlers
    assert not logging.getLogger("shoal.worker").handlers


def test_records_of_workers_are_handled_here(kept):
    """From a level on, by the logger of the same name, once."""
    with Client(**ONE) as client:
        client.forward_logging("of.mine", level=logging.WARNING)
        client.submit(log, "not forwarded", level=logging.INFO).result()
        client.submit(log, "hello %s %s", "you", 2).result()
        kept.wait()
        (record,) = kept.records
        assert (record.name, record.getMessage()) == ("of.mine", "hello you 2")
        (record_worker,) = client.nthreads()
        assert record.worker == record_worker
        assert record.levelno == logging.WARNING
        client.unforward_logging("of.mine")
        with pytest.raises(ValueError, match=r"of\.mine"):
            client.unforward_logging("of.mine")
        client.submit(log, "no more").result()
        handlers = client.run(lambda: len(logging.getLogger("of.mine").handlers))
        assert list(handlers.values()) == [0]
    assert len(kept.records) == 1


def test_a_traceback_comes_along(kept):
    with Client(**ONE) as client:
        client.forward_logging("of.mine")
        client.submit(log_error).result()
        kept.wait()
    (record,) = kept.records
    assert record.getMessage() == "it was so"
    assert record.exc_text.endswith("ValueError: not this way")


def test_workers_that_come_later_forward_as_well(kept):
    with LocalCluster(**ONE) as cluster, Client(cluster) as client:
        client.forward_logging("of.mine")
        cluster.scale(2)
        client.wait_for_workers(2, timeout=SECONDS)
        handler = Kept(2)
        logging.getLogger("of.mine").addHandler(handler)
        client.run(log, "from each")
        handler.wait()
        logging.getLogger("of.mine").removeHandler(handler)
        assert len({record.worker for record in handler.records}) == 2


def test_records_of_this_very_process_are_handled_once(kept):
    """A worker in a thread of ours logs to the loggers that we have."""
    with Client(processes=False, **SMALL) as client:
        client.forward_logging("of.mine")
        client.submit(log, "hello").result()
        mark = threading.Event()
        client.subscribe_topic("mark", lambda event: mark.set())
        client.log_event("mark", None)
        assert mark.wait(SECONDS)
        assert [record.getMessage() for record in kept.records] == ["hello"]
        assert len(client.get_events("forwarded-log-record-forward-logging-of.mine")) == 2
    assert logging.getLogger("of.mine").handlers == [kept]
