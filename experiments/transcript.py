"""Follows docs/tutorial.md from an empty folder and environment, and writes docs/transcript.md.

Makes an environment, installs the wheel with all extras, then runs every command and every Python block
of the tutorial in order, with the time each took. What the page shows as output must be what is printed.
The picture of the page is the one that is drawn here. Run by `make transcript`, which builds the wheel:

    python experiments/transcript.py --wheel dist/optpess-0.1.0-....whl
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TUTORIAL, PAGE = ROOT / "docs" / "tutorial.md", ROOT / "docs" / "transcript.md"
# What the tutorial draws, and where the page shows it.
PICTURES = {"charges.svg": ROOT / "docs" / "figures" / "tutorial-charger.svg"}
# So that a picture is a small file, and the same one each time.
SETTINGS = "svg.fonttype: none\nsvg.hashsalt: tutorial\n"
# A block of code with the output that is shown below it; or a heading.
PART = re.compile(
    r"^## (?P<heading>[^\n]*)$"
    r"|^```python\n(?P<python>.*?)^```$(?:\n\n```text\n(?P<shown>.*?)^```$)?"
    r"|^```console\n(?P<console>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
# Commands of the tutorial that this script has run already, in its own way.
PREPARATION = ("mkdir ", "python3 -m venv ", "pip install ")
LONGEST = 600


@dataclass(frozen=True)
class Step:
    """A block or a command of the page, what the page shows below it, and what happened."""

    part: str
    code: str
    is_command: bool
    shown: str | None
    seconds: float = 0.0
    printed: str = ""
    failed: str | None = None

    @property
    def agrees(self) -> bool:
        """Whether what is shown, if anything is, was printed."""
        return self.shown is None or self.shown == self.printed

    def listing(self) -> list[str]:
        """The step as a fenced block."""
        first, rest = ("$ ", "") if self.is_command else (">>> ", "... ")
        code = self.code.rstrip().splitlines()
        typed = [first + code[0], *(rest + line for line in code[1:])]
        said = self.printed.rstrip().splitlines()
        lines = [line.rstrip() for line in typed + said]
        return ["", "```text", *lines, "```", "", f"{self.seconds:.2f} s"]


def steps_of(page: str) -> Iterator[Step]:
    """What a reader of the page does, in order."""
    heading = ""
    for part in PART.finditer(page):
        if part["heading"] is not None:
            heading = part["heading"]
        elif part["python"] is not None:
            yield Step(heading, part["python"], is_command=False, shown=part["shown"])
        else:  # what follows a command, up to the next one, is its output
            for each in re.split(r"^\$ ", part["console"], flags=re.MULTILINE)[1:]:
                command, _, output = each.partition("\n")
                if not command.startswith(PREPARATION):
                    yield Step(heading, command, is_command=True, shown=output or None)


def follow(page: Path) -> list[Step]:
    """Takes the steps of a page in this interpreter and in this folder, up to the first that fails."""
    names: dict[str, object] = {"__name__": "__main__"}
    done = []
    for step in steps_of(page.read_text(encoding="utf-8")):
        start = time.perf_counter()
        printed, failed = _command(step.code) if step.is_command else _block(step.code, names)
        seconds = time.perf_counter() - start
        done.append(Step(step.part, step.code, step.is_command, step.shown, seconds, printed, failed))
        if failed:
            break
    return done


def _block(code: str, names: dict[str, object]) -> tuple[str, str | None]:
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            exec(compile(code, TUTORIAL.name, "exec"), names)
    except Exception:  # noqa: BLE001 - whatever the tutorial raises is reported
        return said.getvalue(), traceback.format_exc()
    return said.getvalue(), None


def _command(command: str) -> tuple[str, str | None]:
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=LONGEST)
    failed = f"exit code {done.returncode}: {done.stderr.strip()}" if done.returncode else None
    return done.stdout, failed


def prepare(folder: Path, wheel: Path) -> tuple[Path, dict[str, float]]:
    """The folder of the programs of a new environment with the wheel, and the seconds of each step."""
    programs = folder / "environment" / "bin"
    pip = [str(programs / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    commands = {
        "an empty environment": [sys.executable, "-m", "venv", str(programs.parent)],
        "the wheel with all extras": [*pip, f"optpess[all] @ {wheel.resolve().as_uri()}"],
    }
    seconds = {}
    for what, command in commands.items():
        start = time.perf_counter()
        subprocess.run(command, check=True)
        seconds[what] = time.perf_counter() - start
    return programs, seconds


def written(steps: list[Step], prepared: dict[str, float]) -> str:
    """The transcript as a page."""
    times = dict(prepared)
    for step in steps:
        times[step.part] = times.get(step.part, 0.0) + step.seconds
    compared = sum(step.shown is not None for step in steps)
    lines = [
        "# The tutorial, followed from an empty folder",
        "",
        "`make transcript` writes this page: an empty environment, the wheel with all extras, an empty",
        "folder, then every command and block of the [tutorial](tutorial.md) in order.",
        f"{compared} outputs are shown there; all of them were printed, letter by letter.",
        f"Python {platform.python_version()}, two cores; {sum(times.values()):.0f} s in all. The rest",
        "of the ten minutes is reading.",
        "",
        "| step | seconds |",
        "| --- | ---: |",
        *(f"| {what} | {seconds:.1f} |" for what, seconds in times.items()),
        f"| all | {sum(times.values()):.1f} |",
    ]
    for part in dict.fromkeys(step.part for step in steps):
        lines += ["", f"## {part}"]
        for step in steps:
            if step.part == part:
                lines += step.listing()
    return "\n".join(lines) + "\n"


def main() -> None:
    """Prepares the environment, follows the tutorial there, compares, writes."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = arguments.add_mutually_exclusive_group(required=True)
    what.add_argument("--wheel", type=Path, help="the wheel to install")
    what.add_argument("--follow", type=Path, help="only take the steps of this page, here; print JSON")
    given = arguments.parse_args()
    if given.follow:
        json.dump([asdict(step) for step in follow(given.follow)], sys.stdout)
        return
    with tempfile.TemporaryDirectory() as folder:
        programs, prepared = prepare(Path(folder), given.wheel)
        empty = Path(folder) / "empty"
        empty.mkdir()
        settings = Path(folder) / "matplotlibrc"
        settings.write_text(SETTINGS, encoding="utf-8")
        done = subprocess.run(
            [str(programs / "python"), "-P", __file__, "--follow", str(TUTORIAL)],
            cwd=empty,
            env={
                "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
                "HOME": folder,
                "MATPLOTLIBRC": str(settings),
                "SOURCE_DATE_EPOCH": "0",
            },
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        steps = [Step(**step) for step in json.loads(done.stdout)]
        wrong = [step for step in steps if step.failed or not step.agrees]
        for step in wrong:
            print(f"{step.part}: {step.failed or 'the page shows another output'}", file=sys.stderr)
            print(step.code, step.printed, sep="\n", file=sys.stderr)
        if wrong:
            sys.exit(1)
        for name, place in PICTURES.items():
            shutil.copyfile(empty / name, place)
    PAGE.write_text(written(steps, prepared), encoding="utf-8")
    print(f"{len(steps)} steps, all as the page shows them; written to {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
