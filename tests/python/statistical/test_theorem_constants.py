"""Both algorithms at the paper's constants, long enough for the theorems to show.

The guarantees fail with probability at most delta = 0.05 a replicate. With n replicates, more violating
ones than the (1 - 1e-6)-quantile of Binomial(n, 0.05) would be evidence against the code; the bonuses
are so large that none is ever seen, so the tests ask for none. What they would detect: any mistake that
makes even one of 8 x 10^7 deployed policies unsafe, a regret that grows faster than K^0.75 over the last
decade, a weak violation that comes back after it was paid off. `make experiments` does the same with 100
replicates and commits what it found.
"""

import numpy as np
import optpess as op
import pytest

MODEL = op.zoo.pair()
MARGIN = op.SafetyMargin(cost_limit=0.6, safe_cost=0.135)
ALWAYS_FIRST = np.tile([1.0, 0.0], (2, 2, 1))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_million_episodes_of_optpess_lp_never_violate_and_learn():
    learner = op.OptPessLP(
        shape=MODEL.shape,
        initial=MODEL.initial,
        baseline=op.SafeBaseline(ALWAYS_FIRST, MARGIN),
        num_episodes=10**7,
    )
    run = op.simulate(MODEL, learner, replicates=8, seed=11)
    forecast = op.forecast(MODEL, learner).leaves_baseline
    assert run.violating_episodes.sum() == 0
    assert np.abs(run.first_planned / forecast - 1).max() < 0.1
    assert run.growth_exponent().max() <= 0.75


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_hundred_million_episodes_of_optpess_primal_dual_pay_their_violation_back():
    learner = op.OptPessPrimalDual(
        shape=MODEL.shape, initial=MODEL.initial, margin=MARGIN, num_episodes=10**8
    )
    run = op.simulate(MODEL, learner, replicates=2, seed=11)
    late = run.episodes >= op.forecast(MODEL, learner).tightening_horizon
    assert run.weak_violation.max() < 100  # of 10^8 episodes; the theorem's constant is far larger
    assert run.weak_violation[:, late].max() == 0
    assert run.growth_exponent().max() <= 0.75
