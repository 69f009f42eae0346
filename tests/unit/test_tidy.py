"""Each rule of the house finds what it is for, and lets the proper form pass."""

from pathlib import Path
from textwrap import dedent

import pytest

from tests import tidy
from tests.house import words
from tests.house.source import Source

MACHINE = "src/shoal/scheduler/machine/step.py"
POLICY = "src/shoal/scheduler/policies/placement.py"
SHELL = "src/shoal/scheduler/shell/service.py"
MESSAGES = "src/shoal/protocol/messages.py"


def problems(files: dict[str, str] | str, path: str = MACHINE, mentions: str = "") -> list[str]:
    """What `tidy` says of a tree with these files, the one of a single text being at `path`.

    Modules get a docstring if they have none, and count as used.
    """
    texts = {path: files} if isinstance(files, str) else files
    sources = {}
    for name, text in texts.items():
        body = dedent(text)
        sources[name] = Source(name, body if body.startswith('"""') else f'"""Role."""\n{body}')
    used = " ".join(source.module for source in sources.values())
    for name in list(sources):
        init = f"{name.rpartition('/')[0]}/__init__.py"
        sources.setdefault(init, Source(init, '"""Role."""\n'))
    return [finding.problem for finding in tidy.tidy(sources, mentions or used)]


def test_the_project_itself_has_no_parse_error_and_is_read_whole() -> None:
    sources = tidy.read_sources(tidy.ROOT)
    assert {"src/shoal/__init__.py", "tests/tidy.py", "tests/unit/test_tidy.py"} <= set(sources)


# --- lengths --------------------------------------------------------------------------------


def test_a_file_of_501_lines_is_too_long_and_one_of_500_is_not() -> None:
    assert problems("x = 1\n" * 499) == []
    assert problems("x = 1\n" * 500) == ["501 lines, and 500 are the limit: split it by meaning"]


def test_a_function_of_61_lines_is_too_long_and_its_docstring_is_not_counted() -> None:
    docstring = '    """One.\n' + "\n    More.\n" * 20 + '    """\n'
    assert problems("def f():\n" + docstring + "    x = 1\n" * 59) == []
    assert problems("def f():\n" + docstring + "    x = 1\n" * 60) == [
        "f has 61 lines, and 60 are the limit: split it"
    ]


def test_a_method_is_named_with_its_class() -> None:
    text = "class C:\n    def f(self):\n" + "        x = 1\n" * 60
    assert problems(text) == ["C.f has 61 lines, and 60 are the limit: split it"]


def test_an_exemption_allows_its_length_and_must_shrink_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(words.LONG_FILES, MACHINE, 601)
    assert problems("x = 1\n" * 600) == []
    assert problems("x = 1\n" * 599) == ["its limit in LONG_FILES is 601; lower it to 600"]


def test_an_exempt_function_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(words.LONG_FUNCTIONS, f"{MACHINE}:f", 70)
    assert problems("x = 1\n") == ["the limit of f is 70; lower it to 0"]


# --- sets -----------------------------------------------------------------------------------

LOOPS = {
    "a literal": "for x in {1, 2}: print(x)",
    "set()": "list(set([1]))",
    "a comprehension": "ys = [x for x in {y for y in (1, 2)}]",
    "a variable": "waiting = set()\nfor x in waiting: print(x)",
    "an annotated variable": "waiting: set[int] = make()\nfor x in waiting: print(x)",
    "an argument": "def f(keys: set[str]) -> None:\n    for key in keys: print(key)",
    "a keyword argument": "def f(*, keys: frozenset[str]) -> str:\n    return min(keys)",
    "an optional one": "def f(keys: 'set[str] | None') -> None:\n    print(*keys)",
    "a union of sets": "def f(a: set[str], b: set[str]) -> list[str]:\n    return list(a | b)",
    "a method's result": "def f(a: set[str], b: list[str]) -> tuple:\n    return tuple(a.union(b))",
    "a value of a mapping": "def f(m: dict[str, set[str]]) -> str:\n    return max(m['x'])",
    "a got value": "def f(m: dict[str, set[str]]) -> list:\n    return list(m.get('x', ()))",
    "each value": "def f(m: dict[str, set[str]]):\n    for v in m.values(): list(v)",
    "each item": "def f(m: dict[str, set[str]]):\n    for k, v in m.items(): print(*v)",
    "an attribute": "class T:\n    waiters: set[int]\n\ndef f(t: T):\n    for w in t.waiters: g(w)",
    "one made in init": "class T:\n    def f(self):\n        self.s = set()\n        list(self.s)",
    "pop": "def f(idle: set[str]) -> str:\n    return idle.pop()",
    "yield from": "def f(idle: set[str]):\n    yield from idle",
    "unpacking": "def f(idle: set[str]):\n    a, b = idle",
    "an enclosing function's": "def f(s: set[str]):\n    def g(): return list(s)\n    return g",
    "a generator": "def f(s: set[str]):\n    return sum(len(x) for x in s)",
}


@pytest.mark.parametrize("text", LOOPS.values(), ids=LOOPS)
def test_iterating_over_a_set_in_a_pure_room_is_found(text: str) -> None:
    found = problems(text)
    assert len(found) == 1
    assert found[0].endswith("use an OrderedSet, or sorted()")


@pytest.mark.parametrize("text", LOOPS.values(), ids=LOOPS)
def test_a_shell_may_iterate_over_sets(text: str) -> None:
    assert problems(text, path=SHELL) == []


@pytest.mark.parametrize(
    "text",
    [
        "def f(s: set[str]) -> list[str]:\n    return sorted(s)",
        "def f(s: set[str]) -> list[str]:\n    return sorted(x for x in s if x)",
        "def f(s: set[str]) -> bool:\n    return any(x for x in s) and 'a' in s and len(s) > 1",
        "def f(s: set[str]) -> set[str]:\n    return {x for x in s}",
        "def f(s: OrderedSet[str]) -> list[str]:\n    return list(s)",
        "def f(s: set[str]) -> list[str]:\n    s = sorted(s)\n    return [x for x in s]",
        "def f(m: dict[str, set[str]]) -> list[str]:\n    return list(m)",
    ],
)
def test_uses_that_do_not_depend_on_the_order_pass(text: str) -> None:
    assert problems(text) == []


def test_an_attribute_that_is_a_set_in_one_class_and_a_list_in_another_is_not_judged() -> None:
    text = "class A:\n    s: set[int]\n\nclass B:\n    s: list[int]\n\ndef f(b: B):\n    list(b.s)"
    assert problems(text) == []


# --- who writes -----------------------------------------------------------------------------


def test_a_state_is_assigned_in_move_only() -> None:
    text = """
        class Machine:
            def move(self, task, state):
                task.state = state

            def finish(self, task):
                task.state = "memory"
        """
    assert problems(text) == ["Machine.finish assigns a state; only move may"]


def test_there_is_one_move() -> None:
    files = {
        MACHINE: "def move(task, state):\n    task.state = state\n",
        SHELL: "def move(task, state):\n    setattr(task, 'state', state)\n",
    }
    assert problems(files) == ["move is a second place that assigns a task's state"]


def test_a_task_may_be_made_with_a_state() -> None:
    assert problems("class T:\n    def __init__(self):\n        self.state = 'released'\n") == []


def test_a_policy_assigns_to_itself_only() -> None:
    text = "class P:\n    def choose(self, task):\n        self.seen = 1\n        task.worker = 2\n"
    assert problems(text, path=POLICY) == ["a policy assigns to task.worker"]


def test_recursion_in_a_pure_room_is_found() -> None:
    text = "class M:\n    def walk(self, t):\n        for d in t: self.walk(d)\n"
    assert problems(text) == ["walk calls itself; use a list of work"]
    assert problems(text, path=SHELL) == []


# --- words ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("class TaskManager: x = 1", "TaskManager"),
        ("def load_info(): return 1", "load_info"),
        ("def f(memory_manager): return memory_manager", "memory_manager"),
        ("taskInfo = 1", "taskInfo"),
        ("def f(obj): return obj", "obj"),
        ("for ts in (): print(ts)", "ts"),
    ],
)
def test_words_that_say_nothing_are_found(text: str, name: str) -> None:
    found = problems(text)
    assert len(found) == 1
    assert found[0].startswith(f"the name {name!r}: ")


def test_a_module_called_utils_is_found() -> None:
    assert problems("x = 1", path="src/shoal/comms/utils.py") == [
        "the name 'utils': say what is in it"
    ]


def test_a_banned_word_inside_a_longer_word_is_fine() -> None:
    assert problems("information = utility = tmp_path = 1") == []


@pytest.mark.parametrize("marker", ["TODO", "FIXME", "XXX"])
def test_a_leftover_is_found_in_comments_only(marker: str) -> None:
    assert problems(f"x = 1  # {marker}: later") == [f"a {marker} was left behind"]
    assert problems(f"x = '{marker}'") == []


def test_a_module_says_its_role() -> None:
    init = Source("src/shoal/__init__.py", "x = 1\n")
    assert [f.problem for f in tidy.tidy({init.path: init})] == [
        "no docstring that says the module's role"
    ]


def test_a_folder_that_would_not_be_installed_is_found() -> None:
    source = Source("src/shoal/comms/tcp.py", '"""Role."""\n')
    assert [str(f) for f in tidy.tidy({source.path: source}, source.module)] == [
        "src/shoal/comms/__init__.py:1: missing, so the folder won't be installed"
    ]


# --- messages -------------------------------------------------------------------------------

DICTIONARY = """
    class Message: "Base."
    class RunTask(Message, tag=1): "Run."
    class TaskDone(Message, tag=2): "Done."
    class Answer(Message, tag=3): "Ends a call."
    SUBJECT = Subject(
        to_worker={RunTask: None},
        from_worker={TaskDone: None, Answer: None},
    )
    """
ON_RUN = {"src/shoal/worker/machine/step.py": "def on_run_task(m): return m\n"}
ON_DONE = {MACHINE: "def on_task_done(m): return m\n"}


def test_a_message_that_is_explained_numbered_and_heard_passes() -> None:
    assert problems({MESSAGES: DICTIONARY, **ON_RUN, **ON_DONE}) == []


def test_a_message_that_nobody_handles_is_found() -> None:
    assert problems({MESSAGES: DICTIONARY, **ON_RUN}) == [
        "the scheduler must handle TaskDone in exactly one on_task_done: nowhere"
    ]


def test_a_message_that_two_handle_is_found_with_both_places() -> None:
    files = {MESSAGES: DICTIONARY, **ON_RUN, **ON_DONE, SHELL: "def on_task_done(m): return m\n"}
    assert problems(files) == [
        f"the scheduler must handle TaskDone in exactly one on_task_done: {MACHINE}:2, {SHELL}:2"
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('tag=2): "Done."', "tag=2): x = 1", "TaskDone has no docstring"),
        ("tag=2", "tag=1", "TaskDone has the tag 1 of RunTask"),
        ("TaskDone(Message, tag=2)", "TaskDone(Message)", "TaskDone has no numeric tag"),
        ("tag=2", "tag='done'", "TaskDone has no numeric tag"),
        ("TaskDone: None, ", "", "TaskDone is in no direction of a SUBJECT"),
    ],
)
def test_a_message_without_docstring_number_or_direction_is_found(
    old: str, new: str, problem: str
) -> None:
    assert problems({MESSAGES: DICTIONARY.replace(old, new), **ON_RUN, **ON_DONE}) == [problem]


# --- imports --------------------------------------------------------------------------------


def test_a_cycle_through_a_deferred_import_is_found() -> None:
    files = {
        "src/shoal/a.py": "from shoal import b\n",
        "src/shoal/b.py": "import shoal.c\n",
        "src/shoal/c.py": "def f():\n    from .a import x\n    return x\n",
    }
    assert problems(files) == ["an import cycle: shoal.a -> shoal.b -> shoal.c -> shoal.a"]


def test_a_tree_of_imports_has_no_cycle() -> None:
    files = {
        "src/shoal/a.py": "from shoal.b import x\nfrom shoal.c import y\n",
        "src/shoal/b.py": "from shoal.c import y as x\n",
        "src/shoal/c.py": "import os\ny = os\n",
    }
    assert problems(files) == []


def test_a_module_that_nothing_imports_or_names_is_found() -> None:
    files = {
        "src/shoal/a.py": "import shoal.b\nHOME = {'x': 'shoal.c'}\n",
        "src/shoal/b.py": "x = 1\n",
        "src/shoal/c.py": "x = 1\n",
        "src/shoal/d.py": '"""Role; see shoal.d."""\n',
        "src/shoal/sim/__main__.py": "x = 1\n",
    }
    found = problems(files, mentions="shoal.a:main")
    assert found == ["nothing imports this module; use it or remove it"]


# --- generated ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", tidy.GENERATORS)
def test_a_stale_generated_file_is_found(tmp_path: Path, path: str) -> None:
    assert list(tidy.stale_generated(tmp_path)) == []
    generator = tmp_path / path
    generator.parent.mkdir()
    generator.write_text("print('client.py differs'); raise SystemExit(1)")
    assert [f.problem for f in tidy.stale_generated(tmp_path)] == [
        "what it generated is stale; run it. client.py differs"
    ]
    generator.write_text("")
    assert list(tidy.stale_generated(tmp_path)) == []
