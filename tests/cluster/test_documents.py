"""What the documents show is so: their examples run, and the files they name exist."""

import re

import pytest

from tests.programs import ROOT, printed_by_script

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_first_example_prints_what_the_readme_says(tmp_path):
    (block,) = re.findall(r"```diff\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line[1:] for line in block.splitlines() if not line.startswith("-")]
    assert_prints_what_it_says(lines, tmp_path)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_examples_of_a_document_print_what_they_say(document, tmp_path):
    for block in re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL):
        assert_prints_what_it_says(block.splitlines(), tmp_path)


def assert_prints_what_it_says(lines, folder):
    """Each `print(...)  # value` prints the value; words after a comma are for the reader."""
    expected = [line.split("# ")[1].split(",")[0] for line in lines if "print(" in line]
    printed = printed_by_script("\n".join(lines), folder).split("\n")[:-1]
    ports = re.compile(r"127\.0\.0\.1:\d+")  # the first one that is free
    assert [ports.sub("", line) for line in printed] == [ports.sub("", line) for line in expected]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_of_a_document_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), target


SOURCE = ROOT / "src" / "shoal"


def architecture():
    """What is told for reading, and the list of files behind it."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    told, _, listed = text.partition("## Every file\n")
    return told, listed


def test_the_architecture_tells_of_the_folders_that_there_are():
    told, _ = architecture()
    (tree,) = re.findall(r"```text\n(.*?)```", told, re.DOTALL)
    named = set(re.findall(r"^  ([\w/]+)/ ", tree, re.MULTILINE))
    folders = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("__init__.py")}
    assert named <= folders
    assert {folder for folder in folders if "/" not in folder} - {"."} <= named


def test_the_files_that_the_architecture_names_exist():
    told, _ = architecture()
    for path in re.findall(r"`([\w/]+\.py)`", told):
        assert list(SOURCE.rglob(path)) or (ROOT / path).exists(), path


def test_the_architecture_lists_every_file():
    _, listed = architecture()
    for path in SOURCE.rglob("*.py"):
        folder = path.parent.relative_to(SOURCE).as_posix()
        part = listed.partition(f"### `{'shoal' if folder == '.' else folder}/`\n")[2]
        assert part, folder
        if path.name != "__init__.py" and folder != "client/generated":  # alike, made from others
            assert f"\n- `{path.stem}` " in part.partition("\n### ")[0], path


def test_every_make_target_that_the_readme_names_exists():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"make (\w+)", (ROOT / "README.md").read_text()))
    assert named <= targets
