"""Every command with every mistake: what is typed, and the exit code. ``docs/command-line-refusals.md``
shows them with the lines that are printed; ``python tests/python/cli/mistakes.py`` writes it.
"""

import sys
import tempfile
from contextlib import chdir
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from optpess.cli.main import optpess
from optpess.run.tables import markdown

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "command-line-refusals.md"
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "python"))

from cli import harness  # noqa: E402

HEAD = """# What the command line refuses

Every command with wrong arguments, with a missing, damaged or foreign file, with an unknown name and
with nowhere to write: the exit code, and the one line on standard error. Nothing is printed on standard
output and nothing is left behind. A test runs every row and compares it with this page. The files:

| file | what it is |
| --- | --- |
| `mine.npz`, `safe.npy`, `run.npz`, `learner.npz` | a model, a policy, a record, a learner: all good |
| `cut-...` | the first half of one of them |
| `text.npz`, `text.npy` | a few words |
| `lp.npz` | a learner of another algorithm |
| `small.npy`, `words.npy` | a policy of another size, an array of words |
| `study.toml` | a study |
| `key.toml`, `kind.toml`, ... | the same with one thing changed |
| `text.toml` | a few words |
| `folder` | a folder |
| `nowhere.npz` | a link to a file that is not there |
| `loop...` | links to themselves |
"""


@dataclass(frozen=True)
class Mistake:
    """A command line that is refused."""

    kind: str
    typed: str
    code: int = 2

    @property
    def arguments(self):
        return self.typed.split()


def _of_models(command, rest=""):
    """What can be wrong with the argument MODEL."""
    return [
        Mistake("no model", f"{command}{rest}"),
        Mistake("unknown name", f"{command} rng{rest}"),
        Mistake("missing file", f"{command} missing.npz{rest}"),
        Mistake("damaged file", f"{command} cut-mine.npz{rest}"),
        Mistake("foreign file", f"{command} text.npz{rest}"),
        Mistake("file of another kind", f"{command} run.npz{rest}"),
        Mistake("folder", f"{command} folder{rest}"),
        Mistake("link to nowhere", f"{command} nowhere.npz{rest}"),
        Mistake("device", f"{command} /dev/zero{rest}"),
        Mistake("link to itself", f"{command} loop.npz{rest}"),
        Mistake("unknown option", f"{command} ring{rest} --jsn"),
    ]


def _of_output(command, suffix, other):
    """What can be wrong with the option --output."""
    return [
        Mistake("no such folder", f"{command} --output nowhere/new{suffix}"),
        Mistake("output is a folder", f"{command} --output folder"),
        Mistake("another suffix", f"{command} --output new{other}"),
        Mistake("link to itself", f"{command} --output loop{suffix}"),
        Mistake("full disk", f"{command} --output /dev/full", 1),
    ]


def _of_learners(command):
    """What can be wrong with learners and their safe policies; ``command`` ends with the model."""
    name, _, *rest = command.split()
    further = " ".join(rest)
    return [
        Mistake("unknown learner", f"{command} --learner optpes-lp"),
        Mistake("unknown rule", f"{command} --learner optpess-lp:shrp"),
        Mistake("senseless factor", f"{command} --learner optpess-lp:scaled:much"),
        Mistake("rule without proof", f"{command} --learner opdop:sharp"),
        Mistake("option for others", f"{command} --learner opdop --stationary"),
        Mistake("no safe policy", f"{name} mine.npz {further} --learner optpess-lp"),
        Mistake("no safe cost", f"{name} mine.npz {further} --learner opdop"),
        Mistake("no margin", f"{command} --learner sops --safe-cost 3"),
        Mistake("unattainable safe cost", f"{command} --learner sops --safe-cost -1", 3),
        Mistake("too many safe costs", f"{command} --learner sops --safe-cost 1 --safe-cost 2"),
        Mistake("two limits", f"{name} inventory_stock_out {further} --learner optpess-lp"),
        Mistake("probability above 1", f"{command} --learner sops --delta 2"),
        Mistake("probability of 0", f"{command} --learner sops --delta 0"),
        Mistake("missing policy", f"{command} --learner sops --baseline missing.npy"),
        Mistake("damaged policy", f"{command} --learner sops --baseline cut-safe.npy"),
        Mistake("foreign policy", f"{command} --learner sops --baseline text.npy"),
        Mistake("policy of another size", f"{command} --learner sops --baseline small.npy"),
        Mistake("policy of words", f"{command} --learner sops --baseline words.npy"),
    ]


def _of_numbers(command):
    """What can be wrong with the numbers of a run."""
    return [
        Mistake("no episodes", f"{command} --learner sops"),
        Mistake("episodes are words", f"{command} --learner sops --episodes many"),
        Mistake("half an episode", f"{command} --learner sops --episodes 0.5"),
        Mistake("zero episodes", f"{command} --learner sops --episodes 0"),
        Mistake("negative seed", f"{command} --learner sops --episodes 9 --seed -1"),
        Mistake("zero replicates", f"{command} --learner sops --episodes 9 --replicates 0"),
        Mistake("fewer than are played", f"{command} --learner sops --episodes 9 --num-episodes 5"),
    ]


MISTAKES = [
    Mistake("unknown command", "sovle"),
    Mistake("unknown option", "--versoin"),
    Mistake("unknown name", "zoo rng"),
    Mistake("unknown option", "zoo --jsn"),
    Mistake("output of all", "zoo --output new.npz"),
    *_of_output("zoo ring", ".npz", ".csv"),
    *_of_models("solve"),
    Mistake("limit is a word", "solve ring --cost-limit low"),
    Mistake("limit is no number", "solve ring --cost-limit nan"),
    Mistake("infeasible", "solve ring --cost-limit -1", 3),
    Mistake("too many limits", "solve ring --cost-limit 1 --cost-limit 2"),
    Mistake("unknown engine", "solve ring --engine higs"),
    Mistake("negative tolerance", "solve ring --tolerance -1"),
    Mistake("no thread", "solve ring --threads 0"),
    Mistake("no time", "solve ring --time-limit 0"),
    *_of_output("solve ring", ".npy", ".npz"),
    *_of_models("frontier"),
    Mistake("two limits", "frontier inventory_stock_out"),
    Mistake("one vertex", "frontier media --max-vertices 1"),
    Mistake("tolerance is no number", "frontier media --tolerance nan"),
    Mistake("limits in the wrong order", "frontier media --between 5 1"),
    Mistake("one limit of two", "frontier media --between 5"),
    Mistake("no thread", "frontier media --threads 0"),
    *_of_output("frontier ring", ".csv", ".npz"),
    *_of_models("simulate", " --episodes 9"),
    *_of_numbers("simulate ring"),
    *_of_learners("simulate ring --episodes 9"),
    Mistake("one file for two", "simulate ring --episodes 9 --checkpoint new.npz --output new.npz"),
    Mistake("checkpoint in no folder", "simulate ring --episodes 9 --checkpoint nowhere/new.npz"),
    Mistake("checkpoint of another run", "simulate ring --episodes 9 --checkpoint run.npz"),
    Mistake("damaged checkpoint", "simulate ring --episodes 9 --checkpoint cut-run.npz"),
    Mistake("K for a learner without", "simulate ring --episodes 9 --num-episodes 9"),
    Mistake("zero threads", "simulate ring --episodes 9 --threads 0"),
    *_of_output("simulate ring --episodes 9", ".npz", ".txt"),
    Mistake("full disk", "simulate ring --episodes 9 --save-learner /dev/full", 1),
    Mistake("one file for two", "simulate ring --episodes 9 --output a.npz --save-learner ./a.npz"),
    *_of_models("compare", " --learner sops --episodes 9"),
    Mistake("no learner", "compare ring --episodes 9"),
    Mistake("learner twice", "compare ring --episodes 9 --learner sops --learner sops"),
    *_of_numbers("compare ring"),
    *_of_learners("compare ring --episodes 9"),
    *_of_output("compare ring --episodes 9 --learner sops", ".npz", ".txt"),
    *_of_models("forecast", " --learner sops --num-episodes 9"),
    Mistake("no learner", "forecast ring"),
    Mistake("no number of episodes", "forecast ring --learner optpess-lp"),
    Mistake("more than K", "forecast ring --learner optpess-lp --episodes 9 --num-episodes 5"),
    *_of_learners("forecast ring --num-episodes 9"),
    Mistake("no study", "sweep"),
    Mistake("missing file", "sweep missing.toml"),
    Mistake("another suffix", "sweep mine.npz"),
    Mistake("folder", "sweep folder"),
    Mistake("foreign file", "sweep text.toml"),
    Mistake("unknown key", "sweep key.toml"),
    Mistake("episodes are words", "sweep kind.toml"),
    Mistake("unknown learner", "sweep name.toml"),
    Mistake("unknown problem", "sweep problem.toml"),
    Mistake("no safe policy", "sweep unsafe.toml"),
    Mistake("nothing to run", "sweep nothing.toml"),
    Mistake("probability above 1", "sweep range.toml"),
    Mistake("option for others", "sweep untaken.toml"),
    Mistake("output is a file", "sweep study.toml --output mine.npz"),
    Mistake("negative retries", "sweep study.toml --retries -1"),
    Mistake("report is a folder", "sweep study.toml --report folder"),
    Mistake("unknown option", "sweep study.toml --jsn"),
    Mistake("no policy", "certify"),
    Mistake("no learner", "certify safe.npy"),
    Mistake("missing policy", "certify missing.npy learner.npz"),
    Mistake("damaged policy", "certify cut-safe.npy learner.npz"),
    Mistake("foreign policy", "certify text.npy learner.npz"),
    Mistake("policy of another size", "certify small.npy learner.npz"),
    Mistake("missing learner", "certify safe.npy missing.npz"),
    Mistake("damaged learner", "certify safe.npy cut-learner.npz"),
    Mistake("foreign learner", "certify safe.npy text.npz"),
    Mistake("folder", "certify safe.npy folder"),
    Mistake("file of another kind", "certify safe.npy mine.npz"),
    Mistake("another algorithm", "certify safe.npy lp.npz"),
    Mistake("the wrong way round", "certify learner.npz safe.npy"),
    Mistake("unknown option", "certify safe.npy learner.npz --jsn"),
    Mistake("no run", "report"),
    Mistake("missing file", "report missing.npz"),
    Mistake("damaged file", "report run.npz cut-run.npz"),
    Mistake("foreign file", "report text.npz"),
    Mistake("folder", "report folder"),
    Mistake("file of another kind", "report mine.npz"),
    Mistake("title without a word", "report run.npz --title="),
    Mistake("unknown option", "report run.npz --jsn"),
    *_of_output("report run.npz", ".html", ".pdf"),
]


def section(mistake):
    """The title under which the page has a mistake."""
    name = mistake.arguments[0]
    return f"optpess {name}" if name in optpess.commands else "optpess"


def page(answers):
    """The page, from what each mistake gives."""
    sections = []
    pairs = zip(MISTAKES, answers, strict=True)
    for title, group in groupby(pairs, key=lambda pair: section(pair[0])):
        rows = [
            (mistake.kind, f"`optpess {mistake.typed}`", str(answer.code), answer.err.strip())
            for mistake, answer in group
        ]
        sections.append(f"## {title}\n\n{markdown(('mistake', 'typed', 'exit code', 'line'), rows)}\n")
    return "\n".join([HEAD, *sections])


def main():
    """Writes the page."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        harness.fill(Path(folder))
        answers = [harness.call(*mistake.arguments) for mistake in MISTAKES]
    PAGE.write_text(page(answers), encoding="utf-8")


if __name__ == "__main__":
    main()
