"""Which part of the Python package may import which. Reads the sources; imports nothing."""

import ast
from pathlib import Path

import optpess
import pytest

PACKAGE = Path(optpess.__file__).parent
# A package or module may import those of a lower rank, and itself. `_core` is the compiled module.
RANKS = {
    "exceptions": 0,
    "_core": 0,
    "arrays": 0,
    "checks": 1,
    "display": 1,
    "storage": 1,
    "progress": 2,
    "model": 2,
    "plan": 3,
    "learn": 4,
    "zoo": 5,  # safe policies are planned, and given as baselines of learners
    "environments": 5,
    "run": 6,
    "plot": 7,
    "report": 8,
    "bench": 8,
    "study": 9,
    "cli": 10,
    "__init__": 11,
    "__main__": 11,
}
# The lowest rank is one layer: `arrays` names a type of `_core`, and the stub of `_core` names arrays.
LAYER = 0
# An import inside a function, of an optional part, with this comment on its line.
LAZY = "# lazy: plot"


def part_of(path: Path) -> str:
    """The part of the package a file belongs to."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py").removesuffix(".pyi")


def imports(text: str):
    """(part imported, line, whether at the top level) of each import from the package."""
    tree = ast.parse(text)
    inside = {
        id(node)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef)
        for node in ast.walk(outer)
    }
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            first, *rest = name.split(".")
            if first == "optpess":
                yield (rest or ["__init__"])[0], node.lineno, id(node) not in inside


def upward(part: str, text: str) -> list[str]:
    """The imports of a source that its rank does not allow."""
    lines, found = text.splitlines(), []
    for imported, number, top_level in imports(text):
        lazy = LAZY in lines[number - 1] and not top_level and imported == "plot"
        same_layer = RANKS[part] == RANKS.get(imported) == LAYER
        allowed = part == imported or same_layer or RANKS.get(imported, 99) < RANKS[part]
        if not (allowed or lazy):
            found.append(f"line {number} imports {imported}")
    return found


SOURCES = sorted(path for path in PACKAGE.rglob("*.py*") if path.suffix in (".py", ".pyi"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_source_imports_only_what_is_below_it(path):
    assert part_of(path) in RANKS, "give it a rank"
    assert upward(part_of(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_array_types_are_declared_in_one_place(path):
    text = path.read_text(encoding="utf-8")
    if part_of(path) != "arrays":
        aliases = [line for line in text.splitlines() if "= npt." in line or "TypeAlias = dict" in line]
        assert aliases == []


def test_the_package_has_imports_to_check():
    found = [each for path in SOURCES for each in imports(path.read_text(encoding="utf-8"))]
    assert len(found) > 80
    lazy = [part_of(path) for path in SOURCES for _ in range(path.read_text("utf-8").count(LAZY))]
    assert sorted(lazy) == ["plan"] * 2 + ["run"] * 3  # the methods called plot


@pytest.mark.parametrize(
    ("part", "text", "found"),
    [
        ("model", "from optpess.plan.solve import solve\n", ["line 1 imports plan"]),
        ("model", "from optpess import (\n    storage,\n    zoo,\n)\n", ["line 1 imports zoo"]),
        ("plan", "import optpess.zoo\n", ["line 1 imports zoo"]),
        ("zoo", "import optpess.run\n", ["line 1 imports run"]),
        ("learn", "import optpess.zoo\n", ["line 1 imports zoo"]),
        ("environments", "import optpess.zoo\n", ["line 1 imports zoo"]),
        ("zoo", "import optpess.plan\n", []),
        ("zoo", "import numpy as np\n\nimport optpess\n", ["line 3 imports __init__"]),
        ("run", "def f():\n    from optpess.plot import g\n", ["line 2 imports plot"]),
        ("run", "from optpess.plot import g  # lazy: plot\n", ["line 1 imports plot"]),
        ("plan", "def f():\n    from optpess.run import g  # lazy: plot\n", ["line 2 imports run"]),
        ("plan", "from optpess.cellar import wine\n", ["line 1 imports cellar"]),
        ("run", "def f():\n    from optpess.plot import g  # lazy: plot\n", []),
        ("plan", "from optpess import _core, storage\nfrom optpess.plan.result import Plan\n", []),
        ("model", "import os\nfrom operator import index\n", []),
    ],
)
def test_the_checker_finds_what_it_is_for(part, text, found):
    assert upward(part, text) == found
