"""Averages that leave their ranges by more than their radius refute what a guarantee rests on."""

import numpy as np
import optpess as op
import pytest

PAIR = op.zoo.problem("pair")
TOLD = {"shape": PAIR.model.shape, "initial": PAIR.model.initial}
MARGIN = op.SafetyMargin(0.6, 0.135)
NOISY = {"bounded_observations": False, "num_episodes": 1000}
LEARNERS = {
    "OptPess-LP": lambda: op.OptPessLP(**TOLD, **NOISY, baseline=PAIR.baseline),
    "OptPess-PrimalDual": lambda: op.OptPessPrimalDual(**TOLD, **NOISY, margin=MARGIN),
    "SOPS": lambda: op.SOPS(**TOLD, **NOISY, baseline=PAIR.baseline),
    "OptPess-Mix": lambda: op.OptPessMix(**TOLD, baseline=PAIR.baseline, variance_proxy=0.5),
}


def observe(learner, reward, cost):
    deployment, horizon = learner.next_policy(), TOLD["shape"].horizon
    states = np.full(horizon, int(np.argmax(TOLD["initial"])))
    actions = [int(np.argmax(deployment.policy[h, states[h]])) for h in range(horizon)]
    learner.observe(states, actions, [reward] * horizon, [cost] * horizon)


def observe_often(learner, reward, cost):
    for _ in range(200):
        observe(learner, reward, cost)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("observed", [(0.5, -1.0), (0.5, 2.0), (-1.0, 0.5), (2.0, 0.5)])
def test_averages_outside_of_the_range_are_refused(name, observed):
    learner = LEARNERS[name]()
    with pytest.raises(op.InvalidInputError, match=r"within its range, but .* observations average"):
        observe_often(learner, *observed)
    seen = learner.episodes_observed
    assert 5 < seen < 200  # a few such observations are what noise does
    learner.abandon()
    observe(learner, 0.5, 0.5)
    assert learner.episodes_observed == seen + 1


@pytest.mark.parametrize("name", LEARNERS)
def test_averages_within_the_range_are_taken(name):
    learner = LEARNERS[name]()
    for episode in range(200):  # 0.05 on average: the baseline costs what was stated of it
        observe(learner, 0.5, 1.05 if episode % 2 else -0.95)
    assert learner.guarantee is not None
