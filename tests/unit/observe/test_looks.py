"""Small things that looks are made of: stacks, stimuli, versions, facts, dumps."""

import asyncio
import sys
import threading

import pytest

from shoal.observe.dumps import DumpArtefact, file_of, packed, plain
from shoal.observe.errors import UnknownDumpFormat
from shoal.observe.facts import HasWhat, WhoHas, facts_of_identity
from shoal.observe.installed import mismatch_of, told_versions
from shoal.observe.stacks import frames_of, frames_of_coroutine
from shoal.observe.stimuli import read_stimuli, stimulus_of, stimulus_of_run
from shoal.observe.versions import package_versions
from shoal.protocol.questions import Identity, WorkerIdentity


def test_the_frames_of_a_thread_are_told_outermost_first_with_their_lines():
    begun, may_end = threading.Event(), threading.Event()

    def outer():
        inner()

    def inner():
        begun.set()
        may_end.wait(30)

    thread = threading.Thread(target=outer)
    thread.start()
    assert begun.wait(30)
    told = frames_of(sys._current_frames()[thread.ident])
    may_end.set()
    thread.join()
    names = [line.partition(", in ")[2].split("\n")[0] for line in told]
    assert names[names.index("outer") :][:2] == ["outer", "inner"]
    assert "may_end.wait(30)" in told[names.index("inner")]
    assert frames_of(None) == []


def test_the_frames_of_a_coroutine_are_what_it_awaits():
    async def outer():
        await inner()

    async def inner():
        await asyncio.Event().wait()

    async def play():
        task = asyncio.create_task(outer())
        await asyncio.sleep(0)
        told = frames_of_coroutine(task.get_coro())
        task.cancel()
        return told

    told = asyncio.run(play())
    assert [line.partition(", in ")[2].split("\n")[0] for line in told] == [
        "outer",
        "inner",
        "wait",
    ]


def test_words_for_causes_are_read_as_what_they_were_made_of():
    words = [stimulus_of("SubmitTasks", 17), stimulus_of_run(4), "plain", ("x", 0), "-3"]
    assert read_stimuli(words) == ([("SubmitTasks", 17), ("run", 4)], [4])
    assert stimulus_of_run(0) == "worker"


def test_the_versions_that_are_told_are_those_that_are_installed():
    found = {name: version for name, version in package_versions().items() if version}
    assert told_versions() == found


def test_a_difference_is_a_table_and_the_scheduler_may_have_other_packages_of_users():
    ours = {"python": "3.12", "numpy": "2.0", "dask": "1"}
    assert mismatch_of(ours, ours, {}) == ""
    assert mismatch_of(ours, {**ours, "numpy": "1.0"}, {}) == ""
    assert mismatch_of(ours, {}, {"a": {"dask": "2"}}) == ""
    assert "3.11" in mismatch_of(ours, {**ours, "python": "3.11"}, {})
    table = mismatch_of(ours, ours, {"a": {**ours, "numpy": "1.9"}, "b": {}})
    assert "numpy" in table
    assert "1.9" in table
    assert "dask" not in table


def test_facts_say_how_many_workers_there_are_when_few_are_shown():
    worker = WorkerIdentity("tcp://<a>:1", 1, "a", "host", 2, 100, 7, nprocessing=5, nsent=4)
    facts = facts_of_identity(Identity("s", "tcp://s:1", 0.0, [worker], {}, 3, 6, 300))
    assert (facts["n_workers"], facts["total_threads"], facts["total_memory"]) == (3, 6, 300)
    metrics = facts["workers"]["tcp://<a>:1"]["metrics"]
    assert metrics["task_counts"] == {"executing": 2, "ready": 3}
    for shown in (facts, WhoHas(x=("<a>",)), HasWhat({"<a>": ("x",)})):
        assert "&lt;a&gt;" in shown._repr_html_()
        assert "<a>" not in shown._repr_html_()


def test_whatever_is_told_can_be_dumped():
    endless: list[object] = [{1: {"words"}, None: object}]
    endless.append(endless)
    shown = plain(endless)
    assert shown[0]["1"] == ["words"]
    for format in ("msgpack", "yaml"):
        assert packed({"events": shown}, format)


def test_a_dump_of_another_format_is_refused_by_its_name(tmp_path):
    for url in ("dump.json", str(tmp_path / "dump")):
        with pytest.raises(UnknownDumpFormat, match="Unsupported format"):
            DumpArtefact.from_url(url)
    assert file_of("dump.yaml", "yaml") == "dump.yaml"
