"""The golden instances, through the Python border; every answer was derived in exact fractions."""

import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import optpess as op
import pytest
from support.problems import FORMS, in_form

FOLDER = Path(__file__).resolve().parents[2] / "golden"
FILES = sorted(FOLDER.glob("*.toml"))


def numbers(nested):
    """Nested lists of fractions as an array of floats."""
    if isinstance(nested, list):
        return np.array([numbers(entry) for entry in nested])
    return float(Fraction(nested))


class Instance:
    """A golden file; `steps` says whether its stationary tables are repeated for every step."""

    def __init__(self, path, form, repeated):
        self.content = tomllib.loads(path.read_text(encoding="utf-8"))
        horizon, content = self.content["horizon"], self.content
        tables = {name: numbers(content[name]) for name in ("transitions", "rewards", "costs")}
        if content["stationary"] and repeated:
            tables = {name: np.stack([table] * horizon) for name, table in tables.items()}
        self.rewards, self.costs = tables["rewards"], tables["costs"]
        self.transitions = in_form(tables["transitions"], form)
        self.initial = numbers(content["initial"])
        self.shape = (horizon, content["states"], content["actions"])


@pytest.fixture(params=[False, True], ids=["as stored", "repeated"])
def repeated(request):
    return request.param


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def instance(request, form, repeated):
    return Instance(request.param, form, repeated)


def close(found, expected):
    np.testing.assert_allclose(found, numbers(expected), rtol=1e-14, atol=1e-15)


def sure(choices, shape):
    """The deterministic policy with these choices [H, S]."""
    return np.eye(shape[2])[np.array(choices)]


def test_there_are_golden_instances():
    assert {path.stem for path in FILES} >= {"pair", "ring", "leak"}


def test_values_of_the_given_policies(instance):
    for entry in instance.content["policies"]:
        policy = numbers(entry["probabilities"])
        for name, signal in (("reward", instance.rewards), ("cost", instance.costs)):
            rest = (signal, instance.transitions)
            if name in entry:
                close(op.evaluate(policy, *rest, instance.initial), entry[name])
            if f"{name}_values" in entry:
                close(op.state_values(policy, *rest), entry[f"{name}_values"])


def test_occupancies_of_the_given_policies(instance):
    for entry in instance.content["policies"]:
        if "occupancy" in entry:
            policy = numbers(entry["probabilities"])
            visits = op.occupancy(policy, instance.transitions, instance.initial)
            close(visits, entry["occupancy"])


def test_the_best_policy_without_the_limit(instance):
    expected, (horizon, *_) = instance.content["unconstrained"], instance.shape
    both = (instance.rewards, instance.transitions)
    given = None if instance.rewards.ndim == 3 else horizon
    policy, values = op.backward_induction(*both, horizon=given)
    close(values, expected["values"])
    close(instance.initial @ values[0], expected["value"])
    # Exact: a deterministic policy, with ties at the lowest action.
    np.testing.assert_array_equal(policy, sure(expected["choices"], instance.shape))


def test_the_mixture_that_is_best_within_the_limit(instance):
    expected = instance.content["constrained"]
    parts = [sure(part["choices"], instance.shape) for part in expected["mixture"]]
    weights = [numbers(part["weight"]) for part in expected["mixture"]]
    rest = (instance.transitions, instance.initial)
    for part, policy in zip(expected["mixture"], parts, strict=True):
        close(op.evaluate(policy, instance.rewards, *rest), part["reward"])
        close(op.evaluate(policy, instance.costs, *rest), part["cost"])
    mixed = op.mix_policies(parts, weights, *rest)
    close(op.evaluate(mixed, instance.rewards, *rest), expected["value"])
    close(op.evaluate(mixed, instance.costs, *rest), expected["cost"])
