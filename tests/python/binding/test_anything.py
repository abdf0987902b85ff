"""Whatever is thrown at a public function, only an exception of the expected kinds comes back.

A panic of the core would arrive as an exception that none of these classes covers.
"""

import contextlib
from functools import partial

import numpy as np
import optpess as op
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from support import healthy

# OSError for paths; TypeError where the compiled core wants a text.
CLEAN = (op.OptPessError, OSError, TypeError)
NUMBERS = ["f8", "f4", "f2", "i8", "u8", "i1", "?", ">f8", "c16", "O", "U3", "M8[s]", "g"]


@st.composite
def arrays(draw):
    """Arrays of any number type, with up to five axes of up to four entries."""
    shape = draw(st.lists(st.integers(0, 4), max_size=5))
    number = draw(st.sampled_from(NUMBERS))
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    values = generator.integers(0, 3, size=shape)
    special = draw(st.sampled_from([None, None, np.nan, np.inf, -1, 1e308, 2**63]))
    with np.errstate(all="ignore"):
        if special is not None and values.size and number in {"f8", "f4", "O"}:
            values = values.astype(float)
            values.flat[0] = special
        return values.astype(number)


WHOLE = [
    healthy.POLICY,
    healthy.REWARDS,
    healthy.TRANSITIONS,
    healthy.TRANSITIONS[0],
    healthy.INITIAL,
    op.Transitions(healthy.TRANSITIONS),
    healthy.sparse(),
    sparse.csr_matrix(healthy.TRANSITIONS.reshape(-1, 2)),
    sparse.coo_array(healthy.TRANSITIONS.reshape(-1, 2)),
    [sparse.csc_array(healthy.TRANSITIONS[0, :, a]) for a in range(2)],
    [healthy.TRANSITIONS[0, :, a] for a in range(2)],
    healthy.model(),
]
anything = st.one_of(
    st.sampled_from(WHOLE),
    st.sampled_from(WHOLE),
    arrays(),
    st.none(),
    st.booleans(),
    st.integers(-3, 1000),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.one_of(st.integers(-2, 2), st.floats(), st.sampled_from(WHOLE[:3])), max_size=3),
    st.builds(object),
)
MODEL = healthy.model()
# A short run, so that a number of replicates up to a thousand stays cheap.
LEARNER = op.OptPessPrimalDual(
    shape=MODEL.shape,
    initial=MODEL.initial,
    margin=op.SafetyMargin(float(MODEL.cost_limits[0]), float(op.solve_least_cost(MODEL).costs[0])),
    num_episodes=3,
)
# name: (function, number of positional arguments, some named ones); planners are given a model.
MIX = op.OptPessMix(
    shape=MODEL.shape,
    initial=MODEL.initial,
    baseline=op.SafeBaseline.estimated(np.full(MODEL.shape, 1 / MODEL.shape[2]), LEARNER.cost_limit),
)
FUNCTIONS = {
    "evaluate": (op.evaluate, 4, []),
    "state_values": (op.state_values, 3, []),
    "occupancy": (op.occupancy, 3, []),
    "policy_from_actions": (op.policy_from_actions, 2, ["horizon"]),
    "policy_from_occupancy": (op.policy_from_occupancy, 2, []),
    "mix_policies": (op.mix_policies, 4, []),
    "value_difference": (op.value_difference, 6, ["expectation"]),
    "backward_induction": (op.backward_induction, 2, ["horizon"]),
    "extended_induction": (op.extended_induction, 3, []),
    "solve_extended": (op.solve_extended, 6, ["engine"]),
    "sample": (op.sample, 3, ["seed", "replicate"]),
    "solve": (partial(op.solve, MODEL), 0, ["engine", "cost_limit"]),
    "solve_signals": (op.solve_signals, 5, ["engine"]),
    "solve_unconstrained": (partial(op.solve_unconstrained, MODEL), 0, []),
    "solve_least_cost": (partial(op.solve_least_cost, MODEL), 0, ["constraint"]),
    "frontier": (partial(op.frontier, MODEL), 0, ["max_vertices"]),
    "Transitions": (op.Transitions, 1, []),
    "Transitions.sparse": (
        partial(op.Transitions.sparse, num_states=2, num_actions=2),
        3,
        ["num_states", "num_actions", "horizon"],
    ),
    "CMDP": (op.CMDP, 5, ["noise", "reward_range", "cost_range", "actions"]),
    "CMDP.stationary": (
        partial(op.CMDP.stationary, horizon=3),
        5,
        ["horizon", "noise", "reward_range", "cost_range", "actions"],
    ),
    "simulate": (partial(op.simulate, MODEL, LEARNER), 0, ["seed", "threads", "episodes", "replicates"]),
    "compare": (partial(op.compare, MODEL, {"one": LEARNER}), 0, ["replicates", "seed"]),
    "forecast": (partial(op.forecast, MODEL, LEARNER), 0, []),
    "certify": (partial(op.certify, learner=MIX), 1, []),
    "rollout": (partial(op.rollout, MIX, episodes=3), 1, ["episodes", "seed", "reward_range"]),
    "load_run": (op.load_run, 1, []),
    "write_report": (op.write_report, 2, ["title"]),
    "reproduce": (op.reproduce, 1, ["threads"]),
    "load_learner": (op.load_learner, 1, []),
    "load_study": (op.load_study, 1, []),
    "Gaussian": (op.Gaussian, 1, []),
    "Uniform": (op.Uniform, 1, []),
}


@settings(max_examples=1000)
@given(st.data())
def test_only_clean_exceptions_come_out_of_a_public_function(data):
    name = data.draw(st.sampled_from(sorted(FUNCTIONS)))
    function, positional, named = FUNCTIONS[name]
    given_arguments = [data.draw(anything) for _ in range(positional)]
    options = {option: data.draw(anything) for option in named if data.draw(st.booleans())}
    with contextlib.suppress(*CLEAN):
        function(*given_arguments, **options)


def test_every_public_function_is_among_them():
    functions = {name for name in op.__all__ if callable(getattr(op, name))}
    classes = {name for name in functions if isinstance(getattr(op, name), type)}
    # A sweep starts processes: it is tested with studies.
    assert functions - classes - FUNCTIONS.keys() == {"sweep"}
