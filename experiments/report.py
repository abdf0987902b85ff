"""Writes the report of a comparison and takes its pictures in Chromium, for docs/report.md.

Run it with `make report-figures`; it needs Chromium.
"""

import io
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import optpess as op
from pages import FIGURES, ROOT
from PIL import Image

EPISODES, REPLICATES = 20_000, 4
# Name of the picture: what the window is like.
WINDOWS = {
    "report-light": {"width": 1080, "height": 1300},
    "report-dark": {"width": 1080, "height": 1300, "dark": True},
    "report-phone": {"width": 390, "height": 844, "scale": 2},
}
COLOURS = 256  # of a picture in a file

sys.path.insert(0, str(ROOT / "tests" / "python"))
from support.chromium import Chromium  # noqa: E402


def learners(problem):
    """OptPess-Mix, the paper's two algorithms, one that they are compared with, and the baseline."""
    told = {"shape": problem.model.shape, "initial": problem.model.initial}
    given = told | {"num_episodes": EPISODES}
    margin = op.SafetyMargin(float(problem.model.cost_limits[0]), float(problem.safe_costs[0]))
    return {
        "OptPess-Mix": op.OptPessMix(baseline=problem.baseline, **told),
        "OptPess-LP": op.OptPessLP(baseline=problem.baseline, confidence=op.Sharp(), **given),
        "OptPess-PrimalDual": op.OptPessPrimalDual(margin=margin, **given),
        "OptCMDP": op.OptCMDP(margin=margin, **given),
        "AlwaysBaseline": op.AlwaysBaseline(baseline=problem.baseline, **given),
    }


def main():
    """Writes the three pictures."""
    problem = op.zoo.problem("media")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", op.GuaranteeWarning)
        found = op.compare(problem.model, learners(problem), episodes=EPISODES, replicates=REPLICATES)
    with TemporaryDirectory() as folder, Chromium() as browser:
        title = "Video over a metered link: five learners"
        page = op.write_report(Path(folder) / "report.html", found, title=title)
        for name, window in WINDOWS.items():
            browser.open(page, **window)
            picture = Image.open(io.BytesIO(browser.screenshot())).convert("RGB").quantize(COLOURS)
            picture.save(FIGURES / f"{name}.png", optimize=True)
            print(f"docs/figures/{name}.png: {(FIGURES / f'{name}.png').stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
