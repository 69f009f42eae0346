"""What the documents show is so: their examples run, and the files they name exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_first_example_prints_what_the_readme_says(tmp_path):
    readme = (ROOT / "README.md").read_text()
    block = re.search(r"```diff\n(.*?)```", readme, re.DOTALL)
    assert block is not None
    lines = [line[1:] for line in block[1].splitlines() if not line.startswith("-")]
    expected = [line.split("# ")[1] for line in lines if line.startswith("print(")]
    script = tmp_path / "example.py"
    script.write_text("\n".join(lines))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split("\n")[:-1] == expected


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
