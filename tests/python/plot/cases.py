"""Runs to draw, and ways to look at figures."""

import io
from dataclasses import fields
from functools import cache
from xml.etree import ElementTree

import numpy as np
import optpess as op

EPISODES = 300
LIMIT = 0.6  # of the pair
WINDOWS = (
    "deployed_value",
    "deployed_value_least",
    "deployed_value_greatest",
    "deployed_cost",
    "deployed_cost_least",
    "deployed_cost_greatest",
    "baseline_share",
    "signed_violation",
)


def learner(name, **options):
    """A learner on the pair; bonuses are small, so that something happens in a few episodes."""
    pair = op.zoo.problem("pair")
    sizes = {"shape": pair.model.shape, "initial": pair.model.initial}
    if name == "OptPessMix":
        return op.OptPessMix(**sizes, baseline=pair.baseline, **options)
    told = sizes | {"num_episodes": EPISODES}
    if name == "AlwaysBaseline":
        return op.AlwaysBaseline(**told, baseline=pair.baseline)
    safe = {"OptPessLP": {"baseline": pair.baseline}}.get(name, {"margin": pair.baseline.margin})
    return getattr(op, name)(**told, **safe, **({"confidence": op.Scaled(0.02)} | options))


@cache
def run(name, replicates=3, seed=1):
    """A run of a learner on the pair."""
    model = op.zoo.problem("pair").model
    return op.simulate(
        model, learner(name), episodes=EPISODES, replicates=replicates, seed=seed, progress=False
    )


def changed(record, **values):
    """A copy of a run with other values."""
    return op.Run(**{each.name: getattr(record, each.name) for each in fields(record)} | values)


def of_an_earlier_format(record):
    """The record without what the first format lacks."""
    missing = dict.fromkeys(WINDOWS)
    facts = ("gain", "baseline_value", "baseline_costs", "cost_limits", "_origin", "_learners")
    return changed(record, **missing, **dict.fromkeys(facts), plays={})


@cache
def several_limits():
    """A run with three constraints."""
    problem = op.zoo.problem("inventory_three_limits")
    model = problem.model
    mix = op.OptPessMix(shape=model.shape, initial=model.initial, baseline=problem.baseline)
    return op.simulate(model, mix, episodes=60, replicates=2, progress=False)


def texts(axis):
    return [text.get_text() for text in axis.texts]


def panel(figure, title):
    """The panel with this title."""
    found = [axis for axis in figure.axes if axis.get_title("left") == title]
    assert len(found) == 1, [axis.get_title("left") for axis in figure.axes]
    return found[0]


def svg_of(figure):
    """The figure as SVG, parsed: it can be drawn and is well-formed."""
    stream = io.BytesIO()
    figure.savefig(stream, format="svg")
    return ElementTree.fromstring(stream.getvalue())


def lines(axis):
    """The lines of a panel, without the samples beside their names."""
    return [line for line in axis.get_lines() if line.get_transform() is not axis.transAxes]


def straight(axis, height):
    """The horizontal lines at this height."""
    return [line for line in lines(axis) if np.all(np.asarray(line.get_ydata()) == height)]
