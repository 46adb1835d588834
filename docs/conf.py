"""Settings of the documentation: `make docs` builds it, and nothing is downloaded meanwhile."""

import os
import sys
import warnings
from pathlib import Path

import ell12

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path += [str(HERE / "extend"), str(HERE / "images")]  # for the gallery: its files, and two shades of figures
os.environ.setdefault("MPLBACKEND", "Agg")
warnings.filterwarnings("ignore", message=".*non-interactive.*", category=UserWarning)

from numpydoc.xref import DEFAULT_LINKS  # noqa: E402

from links import INVENTORIES, NAMES  # noqa: E402
from members import shown_members  # noqa: E402
from pages import MODULES  # noqa: E402

project = "ell12"
author = copyright = "The ell12 developers"
release = version = ell12.__version__

extensions = [
    "links",
    "mathml",
    "myst_parser",
    "numpydoc",
    "pages",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
default_role = "py:obj"
nitpicky = False

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence", "smartquotes"]
myst_heading_anchors = 3

autosummary_generate = True
HOMES = {f"ell12.{module}": names for module, names in MODULES.items()}
autosummary_context = {"shown": shown_members({"ell12": ell12.__all__} | HOMES)}
autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_aliases = NAMES  # words of a type that have a page become links, the others stay words
numpydoc_xref_ignore = "all"
DEFAULT_LINKS.clear()  # numpydoc's own, such as that of False, which need Python's inventory
intersphinx_mapping = INVENTORIES
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = "ell12"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["ell12.css"]
html_copy_source = False
html_show_sphinx = False
html_last_updated_fmt = None

sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"^(?!plot_)",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "image_scrapers": ("shades.scrape",),
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("ell12",),
    "reference_url": {"ell12": None},
    "reset_modules": ("matplotlib",),
}
