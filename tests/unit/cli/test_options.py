"""What command lines mean, and how those that mean nothing are refused."""

import pickle

import click
import pytest
from click.testing import CliRunner

from shoal.cli import errors
from shoal.cli.main import main
from shoal.cli.options import (
    Checked,
    OneLineCommand,
    absent,
    harmless,
    read_address,
    read_folder,
    read_interface,
    read_memory,
    read_name,
    read_resources,
    read_seconds,
)
from shoal.cli.scheduler import listening_at
from shoal.cli.worker import read_ports, share_ports
from shoal.errors import UnknownInterface
from shoal.version import VERSION


def invoke(*arguments):
    return CliRunner().invoke(main, arguments, prog_name="shoal")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("wroker", "wroker"),
        ("--versoin", "versoin"),
        ("scheduler --porz 1", "porz"),
        ("scheduler --port 70000", "70000"),
        ("scheduler extra", "unexpected extra argument (extra): such are for --preload"),
        ("scheduler --interface nowhere0", "nowhere0"),
        ("scheduler --host 127.0.0.1:1 --port 2", "Say the port once"),
        ("scheduler --host ftp://host", "'ftp' is unknown"),
        ("scheduler --host unix:///here", "listens on tcp://"),
        ("scheduler --tls-cert file", "--tls-cert is not supported"),
        ("scheduler --jupyter", "--jupyter is not supported"),
        ("worker", "Which scheduler?"),
        ("worker tcp://host", "it has no port"),
        ("worker ftp://host:1", "'ftp' is unknown"),
        ("worker tcp://host:1 --nthreads -1", "-1"),
        ("worker tcp://host:1 --nworkers several", "neither a number nor 'auto'"),
        ("worker tcp://host:1 --nworkers 0", "makes 0 workers"),
        ("worker tcp://host:1 --nworkers 2 --no-nanny", "does not go with --no-nanny"),
        ("worker tcp://host:1 --nworkers 2 --worker-port 80", "2 workers can't share 1"),
        ("worker tcp://host:1 --worker-port 80:70", "first:last"),
        ("worker tcp://host:1 --worker-port 70000", "70000 is not a port"),
        ("worker tcp://host:1 --contact-address tcp://a:1", "--worker-port as well"),
        ("worker tcp://host:1 --listen-address tcp://a:1 --host b", "does not go with --host"),
        ("worker tcp://host:1 --memory-limit much", "much"),
        ("worker tcp://host:1 --resources GPU", "NAME=NUMBER"),
        ("worker tcp://host:1 --death-timeout soon", "soon"),
        ("worker tcp://host:1 --local-directory /proc/x", "Cannot write into /proc/x"),
        ("worker tcp://host:1 --local-directory /proc", "Cannot write into /proc"),
        ("worker tcp://host:1 --lifetime soon", "soon"),
    ],
)
def test_bad_usage_is_one_line_with_the_way_to_help_and_exit_code_2(line, word):
    answer = invoke(*line.split())
    assert answer.exit_code == 2
    (said,) = answer.output.splitlines()
    assert said.startswith("shoal")
    assert word in said
    assert said.endswith("--help")


def test_a_folder_for_the_files_of_tasks_is_made_and_left_as_it_is(tmp_path):
    folder = tmp_path / "a" / "b"
    assert read_folder(str(folder)) == str(folder)
    assert list(folder.iterdir()) == []


def test_workers_share_ports():
    assert share_ports(read_ports("9000:9003"), 2) == [[9000, 9002], [9001, 9003]]
    assert share_ports(read_ports("9000,9005"), 1) == [[9000, 9005]]
    assert share_ports(read_ports("0"), 2) == share_ports(None, 2) == [None, None]


@pytest.mark.parametrize(
    ("host", "port", "found"),
    [
        ("", None, ("", 8786)),
        ("here", None, ("here", 8786)),
        ("here", 0, ("here", 0)),
        ("here:1", None, ("here", 1)),
        ("here:1", 1, ("here", 1)),
        ("tcp://here", 7, ("here", 7)),
        ("tcp://here:5", None, ("here", 5)),
        (":5", None, ("", 5)),
        ("::1", 5, ("::1", 5)),
        ("[::1]:5", None, ("::1", 5)),
    ],
)
def test_a_schedulers_host_may_have_its_port_with_it(host, port, found):
    assert listening_at(host, port) == found


def test_every_command_has_help_and_a_version():
    assert "worker" in invoke().output
    for command in ("scheduler", "worker"):
        assert invoke(command, "--version").output.split()[-1] == VERSION
    for command in ("scheduler", "worker", "demo"):
        answer = invoke(command, "--help")
        assert answer.exit_code == 0
        assert "Usage: shoal" in answer.output


def test_help_does_not_show_what_is_refused_or_has_no_effect():
    text = invoke("worker", "--help").output
    for hidden in ("--tls-cert", "--jupyter", "--nprocs", "--dashboard"):
        assert hidden not in text


def test_options_of_distributed_are_refused_only_if_given_and_ignored_if_harmless():
    @click.command(cls=OneLineCommand)
    @absent("--one", "--two", remedy="Do without.")
    @absent("--flag/--no-flag", remedy="Do without.", takes=False)
    @harmless("--same")
    @harmless("--quiet/--no-quiet", takes=False)
    def command() -> None:
        click.echo("ran")

    runner = CliRunner()
    assert runner.invoke(command, ["--same", "x", "--no-quiet"]).output == "ran\n"
    for arguments in (["--one", "x"], ["--two", "x"], ["--flag"], ["--no-flag"]):
        answer = runner.invoke(command, arguments)
        assert answer.exit_code == 2
        assert "Do without." in answer.output


def test_values_are_read_as_workers_take_them():
    assert read_resources("GPU=2 MEM=10e9") == {"GPU": 2.0, "MEM": 1e10}
    assert read_resources("GPU=2,MEM=1") == {"GPU": 2.0, "MEM": 1.0}
    assert read_name("7") == 7
    assert read_name("alice-7") == "alice-7"
    assert read_seconds("2 minutes") == 120.0
    assert read_address("host:8786") == "tcp://host:8786"
    assert read_memory("4GB") == "4GB"
    assert read_interface("lo") == "127.0.0.1"
    for text in ("GPU=two", "GPU", "=2", "GPU=-1", "GPU=nan", "GPU=inf"):
        with pytest.raises(ValueError, match="NAME=NUMBER"):
            read_resources(text)


def test_a_value_that_is_read_already_stays_as_it_is():
    assert Checked("name", read_name).convert(5, None, None) == 5


@pytest.mark.parametrize(
    "error",
    [
        errors.NoSchedulerNamed(),
        errors.OptionsClash("--a", "--b", "Leave one out."),
        errors.CannotWrite("/x", "no"),
        errors.NotInstalled("The demo", ["a"], ["b"]),
        errors.AnswersDiffer("rows"),
        errors.SchedulerAbsent("file", 2.0),
        UnknownInterface("eth9", ["lo"]),
    ],
)
def test_errors_survive_pickle_and_say_the_same(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error) != ""


@pytest.mark.parametrize(
    "line",
    [
        "worker tcp://127.0.0.1:1 --memory-limit -5",
        "worker tcp://127.0.0.1:1 --memory-limit -1GiB",
        "worker tcp://127.0.0.1:1 --memory-limit 1.5",
        "worker tcp://127.0.0.1:1 --memory-limit inf",
        "worker tcp://127.0.0.1:1 --lifetime -3s",
        "worker tcp://127.0.0.1:1 --lifetime= ",
        "worker tcp://127.0.0.1:1 --death-timeout nan",
        "worker tcp://127.0.0.1:1 --death-timeout -1",
        "worker tcp://127.0.0.1:1 --worker-port x",
        "scheduler --idle-timeout= ",
    ],
)
def test_a_quantity_that_makes_no_sense_is_bad_usage_before_anything_starts(line):
    result = invoke(*line.strip().split(" "))
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert "Invalid value for '--" in result.stderr
