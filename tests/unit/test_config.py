"""Settings come from where people put them, in the units they wrote, or are refused with advice."""

import math
import pickle
from typing import get_args

import dask
import dask.config
import msgspec
import pytest

from shoal import config
from shoal.config.legacy import LEGACY
from shoal.config.meaning import meanings


def names_of(section: type[config.Settings]) -> list[str]:
    """The full names of a section's settings, without `shoal.`."""
    return [f"{section.path}.{field.encode_name}" for field in msgspec.structs.fields(section)]


ALL_NAMES = [name for section in config.SECTIONS for name in names_of(section)]


@pytest.mark.parametrize("section", config.SECTIONS)
def test_without_any_setting_a_section_has_its_defaults(section: type[config.Settings]) -> None:
    assert config.read(section) == section()


@pytest.mark.parametrize("section", config.SECTIONS)
def test_every_default_is_itself_a_valid_value(section: type[config.Settings]) -> None:
    for field in msgspec.structs.fields(section):
        msgspec.convert(getattr(section(), field.name), field.type)


def test_names_are_unique_and_every_section_is_listed() -> None:
    assert len(set(ALL_NAMES)) == len(ALL_NAMES)
    assert set(config.SECTIONS) == set(config.Settings.__subclasses__())


def test_every_old_name_leads_to_a_setting_and_no_two_to_the_same() -> None:
    assert set(LEGACY.values()) <= set(ALL_NAMES)
    assert len(set(LEGACY.values())) == len(LEGACY)


@pytest.mark.parametrize(
    ("setting", "section", "field", "value"),
    [
        ({"shoal.scheduler.allowed-failures": 7}, config.Scheduler, "allowed_failures", 7),
        ({"shoal.scheduler.allowed_failures": 7}, config.Scheduler, "allowed_failures", 7),
        ({"shoal.comm.connect-seconds": "500ms"}, config.Comm, "connect_seconds", 0.5),
        ({"shoal.comm.frame-bytes-max": "2 MiB"}, config.Comm, "frame_bytes_max", 2**21),
        ({"distributed.scheduler.allowed-failures": 7}, config.Scheduler, "allowed_failures", 7),
        ({"distributed.comm.timeouts.connect": "2 s"}, config.Comm, "connect_seconds", 2.0),
        ({"distributed.scheduler.worker-ttl": None}, config.Scheduler, "worker_ttl_seconds", None),
        ({"distributed.scheduler.worker-ttl": 0}, config.Scheduler, "worker_ttl_seconds", None),
        ({"distributed.scheduler.idle-timeout": "0 s"}, config.Scheduler, "idle_timeout_seconds",
         None),
        ({"distributed.scheduler.no-workers-timeout": 0}, config.Scheduler,
         "no_workers_timeout_seconds", 0.0),
        ({"distributed.worker.memory.target": False}, config.Memory, "target_ratio", None),
        ({"distributed.worker.memory.max-spill": False}, config.Memory, "spill_bytes_max", None),
        ({"distributed.worker.memory.max-spill": "1 GB"}, config.Memory, "spill_bytes_max", 10**9),
        ({"distributed.scheduler.worker-saturation": "inf"}, config.Scheduler,
         "worker_saturation", math.inf),
        ({"distributed.scheduler.work-stealing": False}, config.Stealing, "enabled", False),
        ({"distributed.comm.compression": False}, config.Comm, "compression", None),
        ({"distributed.worker.preload": "setup.py"}, config.Worker, "preload", ["setup.py"]),
        ({"shoal.scheduler.default-task-memory": {"x": "2kiB"}}, config.Scheduler,
         "default_task_memory", {"x": 2048}),
        ({"distributed.scheduler.default-task-durations": {"x": "2ms"}}, config.Scheduler,
         "default_task_durations", {"x": 0.002}),
    ],
)  # fmt: skip
def test_a_value_arrives_in_the_unit_of_its_name(
    setting: dict[str, object], section: type[config.Settings], field: str, value: object
) -> None:
    with dask.config.set(setting):
        assert getattr(config.read(section), field) == value


def test_our_name_wins_over_the_old_one_and_an_argument_over_both() -> None:
    both = {"shoal.scheduler.allowed-failures": 1, "distributed.scheduler.allowed-failures": 2}
    with dask.config.set(both):
        assert config.read(config.Scheduler).allowed_failures == 1
        assert config.read(config.Scheduler, allowed_failures=0).allowed_failures == 0
        assert config.read(config.Scheduler, allowed_failures=None).allowed_failures == 1


def test_the_environment_is_read_as_dask_reads_it() -> None:
    found = dask.config.collect_env({"DASK_SHOAL__COMM__CONNECT_SECONDS": "3"})
    with dask.config.set(found):
        assert config.read(config.Comm).connect_seconds == 3.0


@pytest.mark.parametrize(
    ("setting", "section", "words"),
    [
        ({"shoal.comm.connect-seconds": "5 parsecs"}, config.Comm, "no unit of time"),
        ({"shoal.comm.connect-seconds": 0}, config.Comm, "> 0"),
        ({"shoal.comm.backlog": "many"}, config.Comm, "Expected `int`"),
        ({"shoal.comm.frame-bytes-max": "2 elephants"}, config.Comm, "is no size"),
        ({"distributed.worker.memory.target": 1.5}, config.Memory, "<= 1"),
        ({"shoal.comm.conect-seconds": 1}, config.Comm, "Did you mean connect-seconds?"),
        ({"shoal.dashboard.colour": 1}, config.Dashboard, "There are: link, "),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_name(
    setting: dict[str, object], section: type[config.Settings], words: str
) -> None:
    (name,) = setting
    with dask.config.set(setting), pytest.raises(config.SettingError) as refusal:
        config.read(section)
    assert f"The setting {name} can't be used" in str(refusal.value)
    assert words in str(refusal.value)
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)


def test_a_section_inside_a_section_is_not_taken_for_a_misspelt_setting() -> None:
    with dask.config.set({"shoal.worker.memory.target-ratio": 0.5}):
        assert config.read(config.Worker) == config.Worker()
        assert config.read(config.Memory).target_ratio == 0.5


def test_an_argument_that_is_no_setting_is_a_bug_of_the_caller() -> None:
    with pytest.raises(TypeError, match="Scheduler has no setting colour"):
        config.read(config.Scheduler, colour=1)


def test_durations_and_sizes_have_types_that_hold_what_texts_become() -> None:
    for section in config.SECTIONS:
        for field in msgspec.structs.fields(section):
            kinds = str(get_args(field.type) or field.type)
            assert not field.name.endswith("_seconds") or "float" in kinds
            assert "_bytes" not in field.name or "int" in kinds


@pytest.mark.parametrize("section", config.SECTIONS)
def test_every_setting_says_what_it_means(section: type[config.Settings]) -> None:
    texts = meanings(section)
    assert set(texts) == set(section.__struct_fields__)
    assert all(text.endswith((".", "`")) for text in texts.values())


def test_what_a_setting_means_is_one_paragraph() -> None:
    assert meanings(config.Nanny)["steady_seconds"].startswith("A worker that has lived ")
    assert "\n" not in meanings(config.Nanny)["start_method"]


def test_false_is_none_of_what_is_counted() -> None:
    with dask.config.set({"distributed.scheduler.allowed-failures": False}):
        assert config.read(config.Scheduler).allowed_failures == 0
