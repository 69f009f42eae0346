"""Clusters on hosts that are reached by SSH: what they do, what they leave, and how they fail."""

import contextlib
import logging
import re
import signal
import socket
import sys
import threading
import time

import asyncssh
import psutil
import pytest

from shoal import Client, Event, SSHCluster
from shoal.deploy.errors import HostsMissing, ListsDiffer
from shoal.errors import UnsupportedOption
from shoal.testing.clusters import gen_test
from tests.cluster.commands import FACES, Command, environment
from tests.cluster.ssh_server import ssh_server
from tests.programs import ROOT, printed_by_script
from tests.until import until

HERE = "127.0.0.1"
GONE_SECONDS_MAX = 10.0
ONE_THREAD = {"nthreads": 1}


@pytest.fixture
def server(tmp_path):
    with ssh_server(tmp_path) as served:
        yield served


def assert_gone(processes):
    """Whatever has run there ends in time."""
    _, alive = psutil.wait_procs(processes, timeout=GONE_SECONDS_MAX)
    assert alive == []


def test_a_cluster_computes_on_its_hosts_and_follows_its_size(server):
    with SSHCluster(
        [HERE] * 3, connect_options=server.connect_options, worker_options=ONE_THREAD
    ) as cluster:
        assert ", 'tcp://127.0.0.1:" in repr(cluster)
        assert "workers=2, threads=2, memory=" in repr(cluster)
        with Client(cluster) as client:
            assert client.gather(client.map(pow, range(4), [2] * 4)) == [0, 1, 4, 9]
            cluster.scale(3)
            client.wait_for_workers(3, timeout=30)
            cluster.sync(cluster._correct_state)
            assert [spec["place"] for spec in cluster.worker_spec.values()] == [1, 2, 1]
            cluster.scale(1)
            cluster.sync(cluster._correct_state)
            assert list(cluster.workers) == [0]
            assert client.submit(sum, [1, 2]).result() == 3
        ran = server.family()
    assert len(server.commands) == 4
    assert_gone(ran)


@gen_test(timeout=50)
async def test_workers_of_a_host_share_it_and_a_lost_one_is_made_anew_as_it_is_scaled(tmp_path):
    with ssh_server(tmp_path) as server:
        async with (
            SSHCluster(
                [HERE, HERE],
                connect_options=[server.connect_options] * 2,
                worker_options={"n_workers": 2, "memory_limit": "1 GiB"},
                scheduler_options={"port": 0},
                remote_python=[sys.executable] * 2,
                asynchronous=True,
            ) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            assert cluster.plan == cluster.requested == {"0-0", "0-1"}
            workers = (await client.scheduler_info())["workers"].values()
            assert {worker["name"] for worker in workers} == {"0-0", "0-1"}
            assert {worker["memory_limit"] for worker in workers} == {2**30}
            lost = cluster.workers[0]
            for process in reversed(server.family(1)):
                process.kill()
            await until(lambda: lost.status.name == "failed")
            await cluster.scale(1)
            assert cluster.workers[0] is not lost
            assert await client.submit(sum, [1, 2]) == 3
            ran = server.family()
        assert_gone(ran)


def test_a_token_is_in_no_command_no_environment_and_no_log(server, caplog):
    caplog.set_level(logging.DEBUG)
    with (
        SSHCluster(
            [HERE, HERE], connect_options=server.connect_options, worker_options=ONE_THREAD
        ) as cluster,
        Client(cluster) as client,
    ):
        client.submit(print, "so it is", flush=True).result()
        token = cluster.token.hex()
        family = server.family()
        shown = [*server.commands, caplog.text, repr(cluster), repr(cluster.workers)]
        for process in family:
            shown += [*process.cmdline(), *process.environ().values()]
    assert "worker 0 on 127.0.0.1: so it is" in caplog.text  # what is printed there is logged here
    assert len(token) >= 32
    assert len(family) >= 4
    assert [text for text in (*shown, caplog.text) if token in text] == []


def test_a_task_that_never_ends_holds_up_no_end(server):
    def never_end():
        Event("begun").set()
        threading.Event().wait()

    with (
        SSHCluster(
            [HERE, HERE], connect_options=server.connect_options, worker_options=ONE_THREAD
        ) as cluster,
        Client(cluster) as client,
    ):
        endless = client.submit(never_end)
        assert Event("begun").wait(timeout=20)
        ran = server.family()
        began = time.monotonic()
    assert time.monotonic() - began < GONE_SECONDS_MAX
    assert endless.status == "cancelled"
    assert_gone(ran)


def test_what_runs_on_hosts_ends_with_the_connection(server, caplog):
    with SSHCluster(
        [HERE, HERE], connect_options=server.connect_options, worker_options=ONE_THREAD
    ) as cluster:
        family = server.family()
        server.cut()
        assert_gone(family)
        cluster.sync(cluster.scheduler.finished)
    assert "worker 0 on 127.0.0.1 has ended: the connection to it was lost" in caplog.text


@pytest.mark.parametrize("hosts", [None, [], [HERE], HERE])
def test_too_few_hosts_are_refused(hosts):
    with pytest.raises(ValueError, match=r"^hosts= is a list of two or more: .*It is ") as caught:
        SSHCluster(hosts)
    assert isinstance(caught.value, HostsMissing)


@pytest.mark.parametrize("option", ["connect_options", "remote_python"])
def test_a_list_that_is_not_as_long_as_the_hosts_is_refused(option):
    with pytest.raises(RuntimeError, match=f"^{option}= is a list of 1 for 2 hosts") as caught:
        SSHCluster([HERE, HERE], **{option: [{}]})
    assert isinstance(caught.value, ListsDiffer)


def test_options_of_the_older_class_are_refused_with_what_to_do():
    with pytest.raises(UnsupportedOption, match=r"worker_addrs= is not .* Give hosts="):
        SSHCluster([HERE, HERE], worker_addrs=[HERE])


NO_HOST_KEY = {"known_hosts": ([], [], [])}
FAILURES = {
    "a key that nobody knows": (
        {"client_keys": "other"},
        {},
        r"the login was refused .* Give connect_options=",
    ),
    "a host that nobody knows": (
        NO_HOST_KEY,
        {},
        r"its host key is not to be trusted .* Run `ssh 127.0.0.1` once",
    ),
    "nobody there": ({"port": 1}, {}, r"it can't be reached .* Look whether `ssh` reaches it"),
    "no Python": (
        {},
        {"remote_python": "/no/python"},
        r"there is no /no/python there; it said:\n.*/no/python.*\n Give remote_python=",
    ),
    "no shoal": (
        {},
        {"remote_python": f"{sys.executable} -I -S"},
        r"shoal is not installed for .*\n Install it there \(.* -m pip install shoal==",
    ),
    "a host that is not its own": (
        {},
        {"scheduler_options": {"host": "192.0.2.1"}},
        r"ListenError: .*192\.0\.2\.1.* What it is made with is said in scheduler_options=",
    ),
    "an option that nobody has": (
        {},
        {"scheduler_options": {"prot": 1}},
        r"TypeError: .*'prot'.* What it is made with is said in scheduler_options=",
    ),
}


@pytest.mark.parametrize("case", sorted(FAILURES))
def test_a_host_that_fails_is_named_with_why_and_what_to_do(case, server, tmp_path):
    login, options, why = FAILURES[case]
    if "client_keys" in login:
        login = {"client_keys": [asyncssh.generate_private_key("ssh-ed25519")]}
    login = {**server.connect_options, **login}
    said = rf"(?s)^Cluster failed to start: Host '127.0.0.1' does not run the scheduler: {why}"
    with pytest.raises(RuntimeError, match=said):
        SSHCluster([HERE, HERE], connect_options=login, **options)
    assert_gone(server.processes)


def test_a_port_that_is_taken_is_named(server):
    with socket.create_server((HERE, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RuntimeError, match=rf"ListenError: .*:{port}"):
            SSHCluster(
                [HERE, HERE],
                connect_options=server.connect_options,
                scheduler_options={"port": port},
            )


def test_every_host_that_fails_is_told_of(server):
    pythons = [sys.executable, "/no/python", "/nor/here"]
    with pytest.raises(RuntimeError) as caught:
        SSHCluster([HERE] * 3, connect_options=server.connect_options, remote_python=pythons)
    assert "does not run worker 0: there is no /no/python there" in str(caught.value)
    assert "does not run worker 1: there is no /nor/here there" in str(caught.value)
    assert_gone(server.processes)


WITHOUT_LIBRARY = """
import sys
sys.modules["asyncssh"] = None
from shoal import SSHCluster
try:
    SSHCluster(["a", "b"])
except ImportError as error:
    print(error)
"""


def test_a_missing_library_is_told_with_the_extra_that_brings_it(tmp_path):
    said = printed_by_script(WITHOUT_LIBRARY, tmp_path)
    assert said.startswith("Clusters over SSH need asyncssh (")
    assert said.endswith("Run: pip install 'shoal[ssh]'\n")


# --- the command, and programs -----------------------------------------------------------------


@pytest.fixture
def known(server, tmp_path):
    """The server's hosts have names, as users have them in files of a home of their own."""
    folder = tmp_path / ".ssh"
    folder.mkdir()
    host_key = (tmp_path / "known_hosts").read_text().partition(" ")[2]
    (folder / "known_hosts").write_text(f"* {host_key}")
    (folder / "config").write_text(
        f"Host node*\n  HostName {HERE}\n  Port {server.port}\n  User tester\n"
        f"  IdentityFile {tmp_path / 'key'}\n"
    )
    return server


@pytest.fixture
def start(tmp_path):
    """Start a command in a home of its own; what still runs at the end is killed."""
    with contextlib.ExitStack() as stack:

        def started(*arguments, face="shoal"):
            command = Command(FACES[face], arguments, tmp_path)
            stack.callback(command.kill)
            return command

        yield started


@pytest.mark.parametrize("face", ["dask", "shoal"])
def test_the_command_says_where_the_scheduler_is_and_ends_quietly(face, known, start, tmp_path):
    (tmp_path / "hosts").write_text("node1\n")
    command = start(
        "ssh", "--hostfile", "hosts", "--scheduler", HERE, "--scheduler-port", "0",
        "--ssh-port", str(known.port), "--ssh-username", "tester",
        "--ssh-private-key", str(tmp_path / "key"), "--nthreads", "1", "--memory-limit", "1GiB",
        face=face,
    )  # fmt: skip
    address = command.line()
    assert re.fullmatch(r"tcp://[\d.]+:\d+", address)
    with environment(tmp_path), Client(address) as client:
        assert client.submit(sum, [1, 2]).result() == 3
    ran = known.family()
    command.signal(signal.SIGINT if face == "shoal" else signal.SIGTERM)
    assert command.end() == (0, "")
    assert_gone(ran)


def test_what_runs_on_hosts_ends_with_the_command_however_that_ends(known, start):
    command = start("ssh", "node1", "--scheduler-port", "0", "--nthreads", "1")
    command.line()
    ran = known.family()
    command.signal(signal.SIGKILL)
    command.end()
    assert_gone(ran)


def test_a_command_that_can_not_start_says_why_in_a_line(known, start):
    command = start("ssh", "node1", "--scheduler-port", "0", "--remote-python", "/no/python")
    code, said = command.end()
    assert code == 1
    assert said.startswith("Error: Host 'node1' does not run the scheduler: there is no /no/python")
    assert "Traceback" not in said


@pytest.mark.parametrize("face", sorted(FACES))
def test_the_command_has_all_its_names(face, start):
    command = start("ssh", "--version", face=face)
    assert command.line().startswith("shoal ssh, version ")
    assert command.end() == (0, "")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "On which hosts? Name them (host1 host2), or give --hostfile"),
        (["a", "--ssh-port", "x"], "Invalid value for '--ssh-port'"),
        (["a", "--nworkers", "2", "--worker-port", "9000"], "Not enough ports in range"),
        (["a", "--log-directory", "logs"], "--log-directory is not supported"),
        (["a", "--hostfile", "nowhere"], "Invalid value for '--hostfile'"),
    ],
)
def test_bad_usage_is_one_line(arguments, problem, start):
    code, said = start("ssh", *arguments).end()
    assert code == 2
    assert said.count("\n") == 1
    assert problem in said
    assert said.endswith("shoal ssh --help\n")


def test_the_example_of_the_documents_prints_what_it_says(known, tmp_path):
    text = (ROOT / "docs" / "scaling.md").read_text()
    (example,) = re.findall(r"```python over SSH\n(.*?)```", text, re.DOTALL)
    with environment(tmp_path):
        printed = printed_by_script(example, tmp_path)
    assert printed.splitlines() == re.findall(r"print\(.*\)  # (\d+)", example)
