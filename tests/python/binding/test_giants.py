"""Sizes that no memory holds are refused before anything of that size is asked for.

Views that repeat one element make such sizes cheap to write down.
"""

import numpy as np
import optpess as op
import pytest
from support import healthy
from support.healthy import INITIAL, POLICY, REWARDS, TRANSITIONS, refused

resource = pytest.importorskip("resource", reason="Windows has no getrusage")

ALLOWED_KIB = 64 * 1024


def giant(*shape, dtype=float):
    return np.broadcast_to(np.array(1, dtype=dtype), shape)


CASES = {
    "a horizon": lambda: healthy.stationary(horizon=10**18),
    "a product that wraps around": lambda: healthy.stationary(horizon=2**62),
    "a policy": lambda: op.state_values(giant(10**6, 10**6, 10**6), REWARDS, TRANSITIONS),
    "a signal to plan for": lambda: op.backward_induction(giant(10**6, 10**6, 4), TRANSITIONS),
    "costs": lambda: healthy.model(costs=giant(10**14, 3, 2, 2)),
    "costs to be converted": lambda: healthy.model(costs=giant(10**14, 3, 2, 2, dtype="f4")),
    "transitions": lambda: op.Transitions(giant(10**8, 1, 10**8)),
    "weights": lambda: op.mix_policies([POLICY], giant(10**15), TRANSITIONS, INITIAL),
    "offsets": lambda: op.Transitions.sparse(
        giant(10**15, dtype=int), [0], [1.0], num_states=1, num_actions=1
    ),
    "a number of states": lambda: op.Transitions.sparse(
        [0], [], [], num_states=10**12, num_actions=10**12
    ),
    "a number of episodes": lambda: op.sample(healthy.model(), POLICY, 10**18),
}


@pytest.mark.parametrize("what", CASES)
def test_a_giant_is_refused_without_memory_for_it(what):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with refused("TooLarge", "more entries than can be stored"):
        CASES[what]()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < ALLOWED_KIB


@pytest.mark.parametrize(
    ("name", "shape"),
    [("transitions", (10**4, 10, 10, 10)), ("initial", (10**15,)), ("cost_limit", (10**15,))],
)
def test_a_giant_of_the_wrong_shape_is_refused_for_its_shape(name, shape):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with refused("ShapeMismatch", f"{name} has shape {list(shape)}"):
        healthy.model(**{name: giant(*shape)})
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < ALLOWED_KIB
