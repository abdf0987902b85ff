"""The pages of the documentation, and the links and anchors in them."""

import re
import unicodedata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
# What Sphinx has built may hold copies of pages.
SITE = [page for page in sorted(DOCS.glob("**/*.md")) if "_build" not in page.parts]
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]

_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.*)$", re.MULTILINE)


def links(text: str) -> list[str]:
    """The targets of links and images within the repository; code is left out."""
    targets = _LINK.findall(_CODE.sub("", _FENCE.sub("", text)))
    return [target for target in targets if "://" not in target]


def anchors(text: str) -> set[str]:
    """The anchors that a code host makes of the headings: lower case, hyphens for spaces, no marks."""
    found: dict[str, int] = {}
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        kept = (mark for mark in shown if mark in " -_" or unicodedata.category(mark)[0] in "LN")
        name = "".join(kept).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
        if found[name]:
            found[f"{name}-{found[name]}"] = 0
    return set(found)
