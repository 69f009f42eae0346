"""The page is complete in itself, and takes what it shows for text."""

import re
from importlib.resources import files

from shoal.web.answers import SECURITY_HEADERS

STATIC = files("shoal.web") / "static"
TEXT_BY_NAME = {file.name: file.read_text(encoding="utf-8") for file in STATIC.iterdir()}


def test_nothing_is_loaded_from_elsewhere_and_every_address_is_relative() -> None:
    """It works without a network, and behind the prefix of any proxy."""
    addresses = re.findall(r'(?:href|src)="([^"]*)"', TEXT_BY_NAME["status.html"])
    assert addresses
    for address in addresses:
        assert not address.startswith("/")
        assert ":" not in address
    for name, text in TEXT_BY_NAME.items():
        without_namespaces = re.sub(r'xmlns="[^"]*"', "", text)
        assert "http" not in re.sub(r'"https?:"', "", without_namespaces), name
        assert "url(" not in text, name


def test_each_file_that_the_page_names_is_there() -> None:
    """And no other."""
    named = set(re.findall(r'"static/([^"]*)"', TEXT_BY_NAME["status.html"]))
    assert named | {"status.html"} == TEXT_BY_NAME.keys()


def test_what_is_shown_never_becomes_markup() -> None:
    """A task's name may be anything; it is put in as text."""
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in TEXT_BY_NAME["status.js"]


def test_script_and_style_are_files_as_the_policy_wants() -> None:
    """Nothing inline is allowed to run."""
    page = TEXT_BY_NAME["status.html"]
    assert "style=" not in page
    assert "<style" not in page
    assert not re.search(r"<script(?![^>]*src=)", page)
    assert not re.search(r"\son\w+=", page)
    assert "unsafe" not in SECURITY_HEADERS["Content-Security-Policy"]


def test_every_element_that_the_script_fills_is_in_the_page() -> None:
    """A misspelt name would only show in a browser."""
    ids = set(re.findall(r'id="([^"]*)"', TEXT_BY_NAME["status.html"]))
    assert set(re.findall(r'byId\("([^"]*)"\)', TEXT_BY_NAME["status.js"])) <= ids
