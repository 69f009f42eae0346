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
BY_KIND = ("compat", "sim", "testing")
"""Folders of which the architecture tells what is in them, and not each file."""


def rooms_of_the_architecture():
    """Folder → what the architecture says of it."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    (tree,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    _, *parts = re.split(r"^  (\w+)/", tree, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_the_architecture_names_the_folders_that_there_are():
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert set(rooms_of_the_architecture()) == folders


def test_the_architecture_names_every_file_of_a_folder_whose_files_it_lists():
    for folder, said in rooms_of_the_architecture().items():
        files = {path.stem for path in (SOURCE / folder).rglob("*.py")} - {"__init__", "errors"}
        unnamed = files - set(re.findall(r"\w+", said))
        assert folder in BY_KIND or not unnamed, (folder, unnamed)


def test_every_make_target_that_the_readme_names_exists():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"make (\w+)", (ROOT / "README.md").read_text()))
    assert named <= targets
