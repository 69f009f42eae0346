"""What the documents show is so: their examples run, and the files they name exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
    script = folder / "example.py"
    script.write_text("\n".join(lines))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    printed = done.stdout.split("\n")[:-1]
    ports = re.compile(r"127\.0\.0\.1:\d+")  # the first one that is free
    assert [ports.sub("", line) for line in printed] == [ports.sub("", line) for line in expected]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_of_a_document_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), target


def test_every_folder_that_the_architecture_names_exists():
    text = (ROOT / "docs" / "architecture.md").read_text()
    (tree,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    names = re.findall(r"^  (\w+)/", tree, re.MULTILINE)
    assert len(names) > 8
    for name in names:
        assert (ROOT / "src" / "shoal" / name).is_dir(), name


def test_every_make_target_that_the_readme_names_exists():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"make (\w+)", (ROOT / "README.md").read_text()))
    assert named <= targets
