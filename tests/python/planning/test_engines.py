"""Independent engines give the same answer, and each carries a proof of it that the others accept."""

import numpy as np
import optpess as op
import pytest
from hypothesis import HealthCheck, assume, given, settings

from planning import linear_program
from planning.instances import LIMITS, SHAPES, instances

VALUE = 1e-9  # relative, the promise
COST = 1e-9
GAP = 1e-8
ROUNDING = 1e-11

many = settings(
    max_examples=600,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
some = settings(many, max_examples=120)
ONE_SIGN = ("unit", "integers", "copies", "no cost", "opposed")
STOCHASTIC = ("dense", "sparse", "sure", "dyadic")


def check_plan(instance, plan):
    """Re-evaluates a plan in plain NumPy: what it claims, its limits, its gap."""
    value, costs = instance.value_and_costs(plan.policy)
    unit = max(instance.reward_size, abs(plan.value))
    cost_units = np.maximum(instance.cost_sizes, np.abs(instance.limits))
    assert abs(value - plan.value) <= ROUNDING * unit
    assert (np.abs(costs - plan.costs) <= ROUNDING * cost_units).all()
    assert (costs - instance.limits <= COST * cost_units).all()
    assert (plan.multipliers >= 0).all()
    gap = instance.bound(plan.multipliers) - value
    assert -ROUNDING * unit <= gap <= GAP * unit
    assert abs(plan.certificate.gap - gap) <= GAP * unit
    assert np.array_equal(plan.certificate.slack, instance.limits - plan.costs)
    return unit


@many
@given(instances())
def test_two_engines_agree_on_value_limit_and_multiplier(instance):
    parametric = instance.solve("parametric")
    # HiGHS meets a limit to 1e-10 of its size. Where that moves the optimum by more than its tolerance,
    # because the limit is the least attainable cost up to rounding, the two need not agree.
    steepness = float((parametric.multipliers * instance.cost_sizes).max())
    assume(1e-10 * steepness <= VALUE * max(instance.reward_size, abs(parametric.value)))
    highs = instance.solve("highs")
    unit = max(check_plan(instance, plan) for plan in (parametric, highs))
    assert abs(parametric.value - highs.value) <= VALUE * unit
    # Multipliers need not be equal where the optimum has a kink; each must bound the other's value.
    assert instance.bound(parametric.multipliers) >= highs.value - ROUNDING * unit
    assert instance.bound(highs.multipliers) >= parametric.value - ROUNDING * unit


@some
@given(instances())
def test_a_third_opinion_agrees(instance):
    answer = linear_program.solve(instance)
    plan = instance.solve("parametric")
    unit = max(instance.reward_size, abs(plan.value))
    # Its tolerance of 1e-10 on the limit is worth that times the multiplier.
    priced = 1e-9 * float((plan.multipliers * instance.cost_sizes).sum())
    if answer is None:  # it may miss the least attainable cost by its tolerance, and nothing more
        slack = (instance.limits - linear_program.least_cost(instance)) / instance.cost_sizes
        assert (slack <= 1e-9).all()
    else:
        assert abs(answer.value - plan.value) <= VALUE * unit + priced


@some
@given(instances(signals=ONE_SIGN, kernels=STOCHASTIC, limits=LIMITS[:3], scaled=False))
def test_column_generation_agrees_on_one_constraint(instance):
    if (instance.limits <= 0).any() or (instance.limits > instance.reward.shape[0]).any():
        instance.limits[:] = instance.reward.shape[0] / 2  # what a model accepts
    model = instance.model()
    try:
        columns = op.solve(model, "columns")
    except op.InfeasibleError:
        with pytest.raises(op.InfeasibleError):
            op.solve(model)
        return
    check_plan(instance, columns)
    assert abs(columns.value - op.solve(model).value) <= VALUE * max(1.0, columns.value)


@pytest.mark.parametrize("num_constraints", [2, 3])
def test_several_constraints_agree_with_a_third_opinion(num_constraints):
    @some
    @given(
        instances(
            kernels=STOCHASTIC,
            signals=ONE_SIGN,
            limits=LIMITS[:3],
            shapes=tuple(SHAPES)[:4],
            scaled=False,
            num_constraints=num_constraints,
        )
    )
    def agree(instance):
        answer = linear_program.solve(instance)
        model = instance.model(limits=np.full(num_constraints, instance.reward.shape[0] / 2))
        for engine in ("highs", "columns"):
            plan = op.solve(model, engine, cost_limit=instance.limits)
            unit = check_plan(instance, plan)
            assert abs(plan.value - answer.value) <= VALUE * unit
            assert instance.bound(plan.multipliers) >= answer.value - 1e-9 * unit

    agree()


@some
@given(instances(signals=("any sign", "unit"), limits=("between", "slack"), num_constraints=2))
def test_several_constraints_on_signals_of_any_size_agree_with_a_third_opinion(instance):
    plan = instance.solve("highs")
    unit = check_plan(instance, plan)
    assert abs(plan.value - linear_program.solve(instance).value) <= VALUE * unit
