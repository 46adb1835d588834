"""Draw tutorial.svg by running the lines of guide/tutorial.md: `python docs/images/tutorial.py` in the root."""

import doctest
import re
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "ell12"  # the same file each time

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "guide" / "tutorial.md"


def main() -> None:
    """Run the page and save the figure that it leaves."""
    text = re.sub(r"^```.*$", "", PAGE.read_text(), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    doctest.DocTestRunner().run(test, clear_globs=False)
    test.globs["figure"].savefig(HERE / "tutorial.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
