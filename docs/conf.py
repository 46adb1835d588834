"""Settings of the documentation: `make docs` builds it, and nothing is downloaded meanwhile."""

import os
import sys
import warnings
from pathlib import Path

import ell12

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.append(str(HERE / "extend"))  # whose files the gallery uses
os.environ.setdefault("MPLBACKEND", "Agg")
warnings.filterwarnings("ignore", message=".*non-interactive.*", category=UserWarning)

project = "ell12"
author = copyright = "The ell12 developers"
release = version = ell12.__version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "pages",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
default_role = "py:obj"
nitpicky = False

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence", "smartquotes"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

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
    "image_srcset": ["2x"],
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("ell12",),
    "reference_url": {"ell12": None},
    "reset_modules": ("matplotlib",),
}
