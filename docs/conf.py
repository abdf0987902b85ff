"""Settings of the site that `make docs` builds: MyST pages, the Furo theme, and the docstrings."""

import inspect
import os
import pkgutil
import re

# Autodoc would otherwise read the stub of the compiled module in place of the module itself.
os.environ["SPHINX_AUTODOC_IGNORE_NATIVE_MODULE_TYPE_STUBS"] = "1"

import optpess
import optpess.arrays
from sphinx.application import Sphinx
from sphinx.errors import PycodeError
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.inspect import TypeAliasForwardRef

project = "optpess"
author = "the optpess developers"
release = optpess.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
smartquotes_action = "D"  # dashes; quotes stay, since C'' is a symbol of the paper

html_theme = "furo"
html_title = f"optpess {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False

myst_enable_extensions = ["tasklist"]
myst_heading_anchors = 4  # the anchors that a code host makes of headings

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
# Shown by name; written out they are lines long.
ALIASES = ("ArrayLike", "BoolArray", "FloatArray", "IntArray", "PolicyLike", "TransitionsLike")
autodoc_type_aliases = {name: name for name in ALIASES}
TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # within a union it is shown by its repr

LINK_UPWARDS = re.compile(r"\]\((\.\./[^)#\s]+\.md)(#[^)\s]*)?\)")


def offer_files_of_the_repository(app: Sphinx, docname: str, source: list[str]) -> None:
    """Makes downloads of links to Markdown files outside of docs: they are no pages of the site."""
    folder = (app.srcdir / docname).parent

    def offered(link: re.Match[str]) -> str:
        inside = (folder / link[1]).resolve().is_relative_to(app.srcdir)
        return link[0] if inside else f"](path:{link[1]})"

    source[0] = LINK_UPWARDS.sub(offered, source[0])


def tidy_docstring(
    _app: Sphinx, _what: str, _name: str, _thing: object, _options: object, lines: list[str]
) -> None:
    """Writes a docstring as Napoleon and reStructuredText read it.

    The bars of P(s'|s,a) would mean a replacement, and "Raises" is underlined, unlike other headings.
    """
    for number, line in enumerate(lines):
        if line == "------" and lines[number - 1] == "Raises":
            lines[number - 1 : number + 1] = ["Raises:", ""]
        elif not line.lstrip().startswith((">>>", "...")):
            parts = line.split("``")
            parts[::2] = [part.replace("|", "\\|") for part in parts[::2]]
            lines[number] = "``".join(parts)


FIELDS = ("attribute", "data", "property")
texts_of_fields: dict[str, list[str]] = {}


def keep_text_of_field(
    _app: Sphinx, what: str, name: str, _thing: object, _options: object, lines: list[str]
) -> None:
    """Undoes what Napoleon does to the description of a field: it takes words before a colon for a type.

    The first call for a field comes before Napoleon, the second one after it.
    """
    if what in FIELDS:
        lines[:] = texts_of_fields.setdefault(name, lines.copy())


def find_descriptions_of_fields(_app: Sphinx) -> None:
    """Lets autodoc find the texts below the fields of public classes.

    Public classes name `optpess` as their module, so that is where autodoc looks for them; they are in
    the modules that define the classes.
    """
    public = ModuleAnalyzer.for_module("optpess")
    public.analyze()
    for module in pkgutil.walk_packages(optpess.__path__, "optpess."):
        try:
            found = ModuleAnalyzer.for_module(module.name)
            found.analyze()
        except PycodeError:
            continue  # compiled
        public.attr_docs.update(found.attr_docs)
        public.tagorder.update(found.tagorder)


def name_types_of_fields(_app: Sphinx) -> None:
    """Shows the array types of fields by name; they were evaluated when the package was imported."""
    names = {}
    for alias in reversed(ALIASES):  # of two that are equal the first one is shown
        kind = getattr(optpess.arrays, alias)
        names |= {kind: TypeAliasForwardRef(alias), kind | None: TypeAliasForwardRef(f"{alias} | None")}
    for thing in vars(optpess).values():
        if isinstance(thing, type) and (fields := vars(thing).get("__annotations__")):
            thing.__annotations__ = {field: names.get(kind, kind) for field, kind in fields.items()}


def hide_private_arguments(_app: Sphinx) -> None:
    """Leaves arguments that only the package gives, which start with an underscore, out of pages."""
    for thing in vars(optpess).values():
        if isinstance(thing, type) and "__init__" in vars(thing):
            shown = inspect.signature(thing)
            kept = [each for each in shown.parameters.values() if not each.name.startswith("_")]
            thing.__signature__ = shown.replace(parameters=kept)


def setup(app: Sphinx) -> None:
    """Connects the functions above."""
    app.connect("source-read", offer_files_of_the_repository)
    app.connect("autodoc-process-docstring", tidy_docstring, priority=300)
    app.connect("autodoc-process-docstring", keep_text_of_field, priority=400)  # Napoleon has 500
    app.connect("autodoc-process-docstring", keep_text_of_field, priority=600)
    app.connect("builder-inited", find_descriptions_of_fields)
    app.connect("builder-inited", name_types_of_fields)
    app.connect("builder-inited", hide_private_arguments)
