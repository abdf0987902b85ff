"""Runs the eight trials of a new user from an empty folder, and writes docs/trials.md.

Nothing is built. With ``--wheel`` a fresh environment is made, with the wheel and the libraries that the
trials use; without it, the trials run with ``--python``, in which optpess must be installed.

    python experiments/trials/run.py --wheel dist/optpess-0.1.0-....whl
"""

import argparse
import ast
import datetime
import os
import re
import subprocess
import sys
import tempfile
import time
import tokenize
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORD = HERE.parents[1] / "docs" / "trials.md"
TRIALS = [
    "dosing",
    "simulator",
    "frozen_lake",
    "two_limits",
    "unknown_cost",
    "queue_control",
    "session",
    "mistakes",
]
LIBRARIES = ["gymnasium", "ipython", "matplotlib", "pandas", "scipy"]
# What the issue allows for a simulator of one's own, beside its class.
MOST_LINES = {"simulator": 8}
SECONDS = 600
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Lines:
    """Lines of code a user writes: no blank lines, comments, docstrings, imports, asserts or prints."""

    own: int
    classes: int  # those of an environment or a wrapper


@dataclass(frozen=True)
class Outcome:
    """What a trial took and said."""

    name: str
    lines: Lines
    seconds: float
    text: str
    error: str | None

    @property
    def last(self) -> str:
        """The last line: what came out."""
        said = self.text.strip().splitlines() or ["nothing"]
        return f"FAILED: {self.error}" if self.error else said[-1]


def count_lines(path: Path) -> Lines:
    """Counts the lines of a script; those of a session are its cells."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    cells = [node for node in tree.body if isinstance(node, ast.Assign) and _target(node) == "CELLS"]
    if cells:
        text = ast.literal_eval(cells[0].value)
        return Lines(sum(not line.startswith("import ") for line in text.split("\n") if line), 0)
    with tokenize.open(path) as file:
        skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        tokens = [
            token for token in tokenize.generate_tokens(file.readline) if token.type not in skipped
        ]
    code = {line for token in tokens for line in range(token.start[0], token.end[0] + 1) if token.string}
    left_out = {line for node in ast.walk(tree) if _is_left_out(node) for line in _lines_of(node)}
    inside = {
        line for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for line in _lines_of(node)
    }
    counted = code - left_out
    return Lines(len(counted - inside), len(counted & inside))


def _target(node: ast.Assign) -> str:
    target = node.targets[0]
    return target.id if isinstance(target, ast.Name) else ""


def _lines_of(node: ast.AST) -> range:
    return range(node.lineno, node.end_lineno + 1)


def _is_left_out(node: ast.AST) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Assert):
        return True
    if not isinstance(node, ast.Expr):
        return False
    value = node.value
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return is_text or (isinstance(value, ast.Call) and getattr(value.func, "id", "") == "print")


def fresh_environment(folder: Path, wheel: Path) -> Path:
    """The Python of a new environment with the wheel and the libraries."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, wheel.resolve(), *LIBRARIES], check=True)
    where = "import optpess, pathlib; print(pathlib.Path(optpess.__file__).resolve())"
    said = subprocess.run(
        [python, "-P", "-c", where], check=True, capture_output=True, text=True, cwd=folder
    )
    if not Path(said.stdout.strip()).is_relative_to(folder.resolve()):
        sys.exit(f"optpess came from {said.stdout.strip()}, not from the wheel")
    return python


def play(name: str, python: Path, environment: dict[str, str]) -> Outcome:
    """One trial, in an empty folder of its own."""
    script = HERE / f"{name}.py"
    with tempfile.TemporaryDirectory() as empty:
        start = time.perf_counter()
        done = subprocess.run(
            [python, "-P", script],
            cwd=empty,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        seconds = time.perf_counter() - start
    error = (done.stderr.strip().splitlines() or ["no message"])[-1] if done.returncode else None
    lines = count_lines(script)
    if error is None and lines.own > MOST_LINES.get(name, lines.own):
        error = f"{lines.own} lines of the user's own; at most {MOST_LINES[name]} are allowed"
    return Outcome(name, lines, seconds, ESCAPES.sub("", done.stdout), error)


def report(outcomes: list[Outcome], where: str, versions: str) -> str:
    """The page: a table, and a paragraph for each trial with what the user sees."""
    rows = [
        f"| {number} | [{one.name}](../experiments/trials/{one.name}.py) | {_lines_text(one)} | "
        f"{one.seconds:.1f} | {one.last} |"
        for number, one in enumerate(outcomes, 1)
    ]
    written = [outcome.lines for outcome in outcomes if outcome.name != "mistakes"]
    own, classes = sum(lines.own for lines in written), sum(lines.classes for lines in written)
    seconds = sum(outcome.seconds for outcome in outcomes)
    good = sum(outcome.error is None for outcome in outcomes)
    head = f"""# Eight trials of a new user

`experiments/trials/run.py` writes this page. Each trial is a script as a new user writes it, run
{where},
with {versions}, on {datetime.date.today().isoformat()}. Each asserts what it claims.
{good} of {len(outcomes)} succeeded.

Lines are those of the user's own code, as formatted: without blank lines, comments, docstrings, imports,
asserts and prints; those of a simulator or a wrapper are counted apart. Seconds include the start of
Python and all imports.

| | trial | lines | seconds | what came out |
| --- | --- | --- | ---: | --- |
"""
    total = f"| | all | {own} + {classes} | {seconds:.1f} | |"
    parts = [head + "\n".join([*rows, total])]
    parts += [_section(number, outcome) for number, outcome in enumerate(outcomes, 1)]
    return "\n\n".join(parts) + "\n"


def _lines_text(outcome: Outcome) -> str:
    if outcome.name == "mistakes":
        return "96 calls"
    classes = f" + {outcome.lines.classes} of a class" if outcome.lines.classes else ""
    return f"{outcome.lines.own}{classes}"


def _section(number: int, outcome: Outcome) -> str:
    tree = ast.parse((HERE / f"{outcome.name}.py").read_text(encoding="utf-8"))
    title, _, words = (ast.get_docstring(tree) or "").partition("\n\n")
    title = title.partition(": ")[2].rstrip(".")
    shown = [
        line if len(line) <= 150 else f"{line[:147]}..." for line in outcome.text.strip().splitlines()
    ]
    if outcome.error:
        shown.append(f"FAILED: {outcome.error}")
    words = words.replace("\n", " ")
    return (
        f"## {number}. {title[:1].upper()}{title[1:]}\n\n{words}\n\n```text\n"
        + "\n".join(shown)
        + "\n```"
    )


def main() -> None:
    """Runs the trials and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wheel", type=Path, help="make a fresh environment with this wheel")
    parser.add_argument(
        "--python", type=Path, default=Path(sys.executable), help="a Python with optpess"
    )
    parser.add_argument("--only", choices=TRIALS, nargs="+", help="only these; no page is written")
    parser.add_argument("--no-record", action="store_true", help="write no page")
    given = parser.parse_args()
    environment = dict(os.environ) | {"MPLBACKEND": "agg"}
    with tempfile.TemporaryDirectory() as folder:
        python, where = given.python.absolute(), "from an empty folder, with optpess from a checkout"
        if given.wheel is not None:
            for name in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME"):
                environment.pop(name, None)
            python = fresh_environment(Path(folder) / "venv", given.wheel)
            where = "from an empty folder, with the wheel in an empty environment"
        outcomes = []
        for name in given.only or TRIALS:
            outcomes.append(play(name, python, environment))
            print(
                f"{name}: {_lines_text(outcomes[-1])}, {outcomes[-1].seconds:.1f} s: {outcomes[-1].last}"
            )
        what = (
            "import sys, numpy; print('Python', sys.version.split()[0], 'and NumPy', numpy.__version__)"
        )
        versions = subprocess.run(
            [python, "-c", what], check=True, capture_output=True, text=True
        ).stdout
    if not (given.only or given.no_record):
        RECORD.write_text(report(outcomes, where, versions.strip()), encoding="utf-8")
    failed = [outcome.name for outcome in outcomes if outcome.error]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
