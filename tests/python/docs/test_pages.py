"""The pages hold together: links and anchors lead somewhere, and nothing is left out of the site."""

import re
from collections import Counter

import optpess
import pytest
from support.pages import DOCS, ROOT, SITE, TOP, anchors, links

TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
REFERENCE = re.compile(r"^\.\. auto(\w+):: optpess\.(\S+)$", re.MULTILINE)
# A task of the Makefile with its times, of the first run and of later ones; and as a row of the table.
TASK = re.compile(r"^([a-z-]+):.*## .* \(([^()/]+?)(?: / ([^()]+))?\)$", re.MULTILINE)
ROW = re.compile(r"^\| `make ([a-z-]+)` \| .* \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
GROUPS = [
    "Start",
    "How to",
    "Guarantees and theory",
    "What was measured",
    "Reference",
    "Project",
]


def broken(page, target):
    """Why a link of a page leads nowhere; None if it does lead somewhere."""
    path, _, anchor = target.partition("#")
    found = (page.parent / path).resolve() if path else page
    if not found.exists():
        return f"{target}: no such file"
    if anchor and anchor not in anchors(found.read_text(encoding="utf-8")):
        return f"{target}: no such heading"
    return None


@pytest.mark.parametrize("page", [*TOP, *SITE], ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page):
    found = [broken(page, target) for target in links(page.read_text(encoding="utf-8"))]
    assert [reason for reason in found if reason is not None] == []


def test_a_wrong_file_and_a_wrong_heading_are_noticed():
    text = "[a](missing.md) [b](#missing) ![c](index.md) `[d](code)`\n```text\n[e](code)\n```\n"
    assert links(text) == ["missing.md", "#missing", "index.md"]
    page = DOCS / "index.md"
    assert broken(page, "missing.md") == "missing.md: no such file"
    assert broken(page, "#missing") == "#missing: no such heading"
    assert broken(page, "constraints.md#a-budget") is None


def test_anchors_are_those_of_a_code_host():
    text = "# Which learner: `solve`?\n## C'' - and more\n## Twice\n## Twice\n```text\n# no\n```\n"
    assert anchors(text) == {"which-learner-solve", "c---and-more", "twice", "twice-1"}


def test_every_page_is_in_one_group_of_the_index():
    trees = TOCTREE.findall((DOCS / "index.md").read_text(encoding="utf-8"))
    lines = [line for tree in trees for line in tree.splitlines() if line]
    assert [line.removeprefix(":caption: ") for line in lines if ":caption:" in line] == GROUPS
    listed = Counter(line for line in lines if line[0] != ":")
    pages = Counter(page.relative_to(DOCS).with_suffix("").as_posix() for page in SITE)
    assert listed == pages - Counter(["index"])


def test_every_public_name_is_in_the_reference_once():
    texts = [page.read_text(encoding="utf-8") for page in SITE if page.parent.name == "api"]
    assert Counter(name for text in texts for _, name in REFERENCE.findall(text)) == Counter(
        optpess.__all__
    )


def test_the_table_of_tasks_has_those_of_the_makefile_with_the_same_times():
    tasks = TASK.findall((ROOT / "Makefile").read_text(encoding="utf-8"))
    rows = ROW.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    made = [(name, first, later or first) for name, first, later in tasks]
    assert len(made) > 20
    assert sorted(made) == sorted(row for row in rows if row[0] != "help")
