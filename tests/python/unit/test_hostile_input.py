"""Whatever an argument is, the answer is a finite result or a refusal by this package."""

import copy
import random

import optpess as op
import pytest
from support import hostile

CALLS = hostile.calls()
# Each has one of its arguments replaced so often; `make fuzz` goes on for as long as one likes.
TRIES = 100


@pytest.mark.parametrize("name", CALLS)
def test_no_raw_error_comes_out(name):
    # 28 % of such calls raised a TypeError, AttributeError or OverflowError.
    source = random.Random(name)
    faults = [hostile.outcome(name, CALLS[name], source) for _ in range(TRIES)]
    assert [fault for fault in faults if fault] == []


def test_every_healthy_call_is_healthy():
    refused = {}
    for name, each in CALLS.items():
        try:
            each.function(*each.positional, **dict(each.named))
        except op.OptPessError as error:
            refused[name] = str(error)
    # One healthy file stands for all readers.
    readers = {"CMDP.load", "CMDP.from_umb", "load_learner", "load_study", "Comparison.load"}
    assert refused.keys() <= readers, refused


def test_every_public_function_and_class_that_takes_arguments_is_called():
    not_made = {"Certificate", "Comparison", "Deployment", "Endpoint", "Episode", "Estimates", "Finding"}
    not_made |= {"Forecast", "Frontier", "Guarantee", "Learner", "Member", "Mixture", "Noise", "Plan"}
    not_made |= {"ExtendedPlan", "PolicyBounds", "Progress", "Reevaluation", "Reproduction", "Rollout"}
    not_made |= {"RolloutCertificate", "Run", "Signals", "StudyResult", "Trace", "ConfidenceRule"}
    not_made |= {"CostRadius", "ZeroViolation", "BoundedViolation", "SafeMixture"}
    plain = {"Bernoulli", "Deterministic", "PaperRadius", "Sharp", "SubGaussianRadius", "Theorem"}
    public = {name for name in op.__all__ if callable(getattr(op, name))}
    errors = {name for name in public if isinstance(getattr(op, name), type(Exception))}
    errors = {name for name in errors if issubclass(getattr(op, name), BaseException)}
    called = {name.split(".")[0] for name in CALLS}
    # A sweep is tested with its studies: it starts processes. A report is tested where it is drawn.
    assert public - errors - not_made - plain - called == {"sweep", "write_report"}


@pytest.mark.parametrize("actions", [[[0.5], [0.5, 0.5]], op.OptPessMix])
def test_a_mask_that_is_no_array_beside_transitions_without_axes_is_refused(actions):
    # Found by `make fuzz`: a raw ValueError, and a TypeError.
    with pytest.raises(op.InvalidInputError):
        op.CMDP.stationary((0, 1), 0.5, 0.5, 0.6, 0, horizon=2, actions=actions)


def test_copies_share_no_parameters():
    learner = hostile.mix()
    for twin in (copy.copy(learner), copy.deepcopy(learner)):
        twin.parameters["cost_limits"].append(7)
        assert learner.parameters == hostile.mix().parameters
