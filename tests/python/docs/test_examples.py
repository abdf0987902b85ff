"""Every example runs: docstrings of public names, README, docs, and the scripts of `examples`."""

import doctest
import inspect
import os
import re
import subprocess
import sys
import types

import optpess
import pytest
from support.pages import ROOT, SITE

PAGES = [ROOT / "README.md", *SITE]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
ARGUMENTS = {"demo.py": ["--short"]}
NEEDS = {"gymnasium_grid.py": "gymnasium", "staged_rollout.py": "gymnasium"}
LONGEST = 60  # seconds a script may take
STORIES = {"metered_video.py", "inventory.py", "gymnasium_grid.py"}  # shown by docs/stories.md
# Plain fields are described by the docstring of their class.
MEMBERS = (
    property,
    classmethod,
    staticmethod,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
)
# A Python block and, if it follows at once, the output that the page shows.
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)


def documented():
    """(dotted name, docstring) of every public name and of the members of public classes."""
    yield "optpess", optpess.__doc__
    for name in optpess.__all__:
        thing = getattr(optpess, name)
        yield name, thing.__doc__
        if inspect.isclass(thing):
            public = ((key, member) for key, member in vars(thing).items() if key[0] != "_")
            members = {key: member for key, member in public if isinstance(member, MEMBERS)}
        elif inspect.ismodule(thing):
            members = {key: getattr(thing, key) for key in thing.__all__}
        else:
            members = {}
        for key, member in sorted(members.items()):
            yield f"{name}.{key}", inspect.getdoc(member)


DOCSTRINGS = dict(documented())


@pytest.mark.parametrize("name", DOCSTRINGS)
def test_the_example_of_a_public_name_gives_what_it_shows(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = doctest.DocTestParser().get_doctest(DOCSTRINGS[name] or "", {}, name, None, 0)
    runner, said = doctest.DocTestRunner(), []
    failed, _ = runner.run(example, out=said.append)
    assert failed == 0, "".join(said)


def test_every_public_name_is_documented():
    assert [name for name, text in DOCSTRINGS.items() if not (text or "").strip()] == []


def needs_an_example(name):
    """Whether a name is a function or a class that people make or receive; not an exception."""
    thing = optpess
    for part in name.split("."):
        thing = getattr(thing, part, None)
    is_error = inspect.isclass(thing) and issubclass(thing, BaseException)
    of_a_class = inspect.isclass(getattr(optpess, name.split(".")[0], None)) and "." in name
    return (inspect.isclass(thing) or inspect.isroutine(thing)) and not is_error and not of_a_class


def test_every_public_function_and_class_has_an_example():
    names = [name for name in DOCSTRINGS if needs_an_example(name)]
    assert {"solve", "evaluate", "Run", "zoo.ring", "environments.check"} <= set(names)
    assert [name for name in names if ">>>" not in DOCSTRINGS[name]] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_blocks_of_a_page_run_in_order_and_print_what_it_shows(
    page, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    text, names = page.read_text(encoding="utf-8"), {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        before = text.count("\n", 0, block.start(1))  # so that a traceback names the page's line
        exec(compile("\n" * before + block.group(1), str(page), "exec"), names)
        printed = capsys.readouterr().out
        if block.group(2) is not None:
            assert printed == block.group(2), f"line {before}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_runs_to_its_end(script, tmp_path):
    if script.name in NEEDS:
        pytest.importorskip(NEEDS[script.name], reason="an extra that this environment does not have")
    command = [sys.executable, str(script), *ARGUMENTS.get(script.name, [])]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    if script.name in STORIES:
        shown = (ROOT / "docs" / "stories.md").read_text(encoding="utf-8")
        assert f"```text\n{done.stdout}```" in shown


def test_the_scripts_are_found():
    assert {"by_hand.py", "demo.py"} | STORIES <= {script.name for script in SCRIPTS}
