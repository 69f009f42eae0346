"""What programs find under `distributed.` in dask's configuration, and that it changes nothing."""

from collections.abc import Iterator
from copy import deepcopy

import dask.config
import pytest

from shoal.compat.defaults import enter_defaults, old_defaults
from shoal.config import SECTIONS, Scheduler, read
from shoal.config.legacy import LEGACY


@pytest.fixture
def configuration() -> Iterator[None]:
    """Ours for a while."""
    before, defaults = deepcopy(dask.config.config), list(dask.config.defaults)
    yield
    dask.config.config.clear()
    dask.config.config.update(before)
    dask.config.defaults[:] = defaults


@pytest.mark.usefixtures("configuration")
def test_programs_find_every_setting_that_has_an_old_name() -> None:
    enter_defaults()
    for name, value in old_defaults().items():
        assert dask.config.get(f"distributed.{name}") == value
    assert set(old_defaults()) > set(LEGACY)
    assert dask.config.get("distributed.scheduler.allowed-failures") == 3


@pytest.mark.usefixtures("configuration")
def test_what_a_user_has_set_comes_first() -> None:
    with dask.config.set({"distributed.scheduler.allowed-failures": 7}):
        enter_defaults()
        assert dask.config.get("distributed.scheduler.allowed-failures") == 7
        assert dask.config.get("distributed.scheduler.worker-ttl") == 300


@pytest.mark.usefixtures("configuration")
@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.path)
def test_our_settings_are_what_they_were(section: type) -> None:
    before = read(section)
    enter_defaults()
    assert read(section) == before


@pytest.mark.usefixtures("configuration")
def test_names_of_before_sections_are_warned_about_and_read() -> None:
    enter_defaults()
    with (
        pytest.warns(FutureWarning, match=r"distributed\.scheduler\.allowed-failures"),
        dask.config.set({"allowed-failures": 7}),
    ):
        assert dask.config.get("distributed.scheduler.allowed-failures") == 7


@pytest.mark.usefixtures("configuration")
def test_names_of_before_sections_are_read_from_files_and_the_environment_without_a_word() -> None:
    as_it_was_found = {"allowed_failures": 7, "worker-ttl": "7s"}  # before the drop-in is imported
    dask.config.update(dask.config.config, as_it_was_found)
    enter_defaults()
    assert dask.config.get("distributed.scheduler.allowed-failures") == 7
    settings = read(Scheduler)
    assert (settings.allowed_failures, settings.worker_ttl_seconds) == (7, 7.0)
