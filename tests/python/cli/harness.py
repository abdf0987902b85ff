"""Runs command lines within this process through the real entry point, in a folder with files to use."""

import contextlib
import io
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import optpess as op
from optpess.cli.main import run

# The arguments of the run that several tests use.
QUICK = ("--episodes", "200", "--stationary", "--quiet")


STUDY = """
episodes = 50
replicates = 2
problems = ["ring"]

[learners.mix]
learner = "optpess-mix"
delta = [0.01, 0.1]
"""
# A good study, and some that are refused.
STUDIES = {
    "study": STUDY,
    "text": "states, actions",
    "key": STUDY.replace("delta", "detla"),
    "kind": STUDY.replace("50", "'many'"),
    "name": STUDY.replace("optpess-mix", "optpes-mix"),
    "problem": STUDY.replace('"ring"', '"rng"'),
    "unsafe": STUDY.replace('"ring"', '"mine.npz"'),
    "nothing": STUDY.partition("[learners")[0],
    "range": STUDY.replace("0.1]", "7]"),
    "untaken": STUDY.replace("optpess-mix", "sops") + "stationary = true",
}


@dataclass
class Answer:
    """What a command line left: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def lines(self):
        return self.err.splitlines()


def call(*arguments):
    """A command line, with both streams kept. They are text over bytes, as real ones are."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(each) for each in arguments])
    out.flush(), err.flush()
    return Answer(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def fill(folder):
    """Puts files of every kind, good and bad, into a folder."""
    ring = op.zoo.problem("ring")
    ring.model.save(folder / "mine.npz")
    np.save(folder / "safe.npy", ring.safe_policy)
    np.save(folder / "actions.npy", np.zeros((6, 3), dtype=int))
    np.save(folder / "small.npy", np.full((2, 2, 2), 0.5))
    np.save(folder / "words.npy", np.array(["left", "right"]))
    given = {"shape": ring.model.shape, "initial": ring.model.initial, "baseline": ring.baseline}
    known = op.OptPessMix(**given, knowledge=op.Knowledge(stationary=True))
    done = op.simulate(ring.model, known, episodes=200, progress=False)
    done.save(folder / "run.npz")
    done.learners[0].save(folder / "learner.npz")
    op.OptPessLP(**given, num_episodes=10).save(folder / "lp.npz")
    op.compare(ring.model, {"mix": known}, episodes=200, progress=False).save(folder / "two.npz")
    for name in ("mine.npz", "run.npz", "learner.npz", "safe.npy"):
        stored = (folder / name).read_bytes()
        (folder / f"cut-{name}").write_bytes(stored[: len(stored) // 2])
    (folder / "text.npz").write_text("states, actions\n1, 2\n")
    (folder / "text.npy").write_text("states, actions\n1, 2\n")
    for name, content in STUDIES.items():
        (folder / f"{name}.toml").write_text(content)
    with ThreadPoolExecutor(1) as executor:
        study = op.Study.from_toml(folder / "study.toml")
        op.sweep(study, folder / "study", executor=executor, progress=False)
    (folder / "folder").mkdir()
    (folder / "nowhere.npz").symlink_to("missing.npz")
    (folder / "link.npz").symlink_to("mine.npz")
    for suffix in (".npz", ".npy", ".csv", ".html"):
        (folder / f"loop{suffix}").symlink_to(f"loop{suffix}")


def copied(filled, folder):
    """A copy of a folder that was filled, with its links."""
    shutil.copytree(filled, folder, symlinks=True, dirs_exist_ok=True)
    return folder


def contents(folder):
    """The names of all files in a folder, with their sizes."""
    return sorted((path.name, path.lstat().st_size) for path in Path(folder).iterdir())
