"""The manual's page of settings says what the source says."""

from tools.make_configuration import PAGE, page


def test_the_page_of_settings_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tools/make_configuration.py"
