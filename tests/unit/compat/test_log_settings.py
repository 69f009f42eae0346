"""What the drop-in does to logging as it is imported; what is configured is told in `config`."""

from tests.programs import DROP_IN, run_python

REPORT = """
import distributed
for name in ("distributed", "distributed.client", "tornado", "shoal"):
    logger = logging.getLogger(name)
    print(name, logging.getLevelName(logger.level), len(logger.handlers), logger.propagate)
logging.getLogger("distributed.of.a.task").warning("hello")
logging.getLogger("shoal.worker").info("nothing")
"""


def report(before: str = "") -> tuple[list[str], str]:
    """Loggers after the import, and what went to stderr."""
    ended = run_python("-c", f"import logging\n{before}\n{REPORT}", path=(DROP_IN,))
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines(), ended.stderr


def test_programs_find_the_loggers_that_they_know_and_ours_stay_as_they_are():
    loggers, errors = report()
    assert loggers == [
        "distributed INFO 1 False",
        "distributed.client WARNING 1 False",
        "tornado CRITICAL 1 False",
        "shoal NOTSET 0 True",
    ]
    assert errors.endswith(" - distributed.of.a.task - WARNING - hello\n")
    assert len(errors.splitlines()) == 1


def test_a_program_that_has_set_up_logging_keeps_it():
    loggers, errors = report("logging.basicConfig()")
    assert loggers[:2] == ["distributed INFO 0 True", "distributed.client WARNING 0 True"]
    assert errors == "WARNING:distributed.of.a.task:hello\n"


def test_what_the_configuration_says_holds_for_our_names_as_well():
    before = "import dask; dask.config.set({'logging': {'distributed': 'error'}})"
    loggers, errors = report(before)
    assert loggers == [
        "distributed ERROR 1 False",
        "distributed.client WARNING 1 False",
        "tornado CRITICAL 1 False",
        "shoal ERROR 1 False",
    ]
    assert errors == ""
