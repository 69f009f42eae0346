"""Plugins can be defined, so that modules which do can be imported; making one is refused."""

import pytest

from shoal.compat.plugins import NannyPlugin, SchedulerPlugin, WorkerPlugin
from shoal.errors import UnsupportedOption


@pytest.mark.parametrize("base", [SchedulerPlugin, WorkerPlugin, NannyPlugin])
def test_a_plugin_is_refused_as_it_is_made_by_the_name_that_its_author_gave_it(base: type) -> None:
    counter = type("Counter", (base,), {"start": lambda self, scheduler: None})
    with pytest.raises(UnsupportedOption, match=r"The plugin Counter is not supported.*run_on_sch"):
        counter(1, name="x")
