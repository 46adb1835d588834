"""What the tests of pages share."""

import shutil

import pytest
from paper.tests.browser import BROWSERS, Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if program is None:
        pytest.skip(f"no browser found (looked for {', '.join(BROWSERS)})")
    opened = Browser(program, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()
