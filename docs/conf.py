"""Settings of the documentation: `make docs` builds it, and nothing is downloaded meanwhile."""

import os
import sys
import warnings
from pathlib import Path

import ell12

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE / "extend"))  # for the gallery
os.environ.setdefault("MPLBACKEND", "Agg")
warnings.filterwarnings("ignore", message=".*non-interactive.*", category=UserWarning)

project = "ell12"
author = copyright = "The ell12 developers"
release = version = ell12.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
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
autosummary_ignore_module_all = False  # the public names of a module are those of its __all__
autosummary_context = {"top": ell12.__all__}
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = "ell12"
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
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("ell12",),
    "reference_url": {"ell12": None},
    "reset_modules": ("matplotlib",),
}
