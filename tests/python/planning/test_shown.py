"""What the results of planning show at the prompt and in notebooks."""

import re

import numpy as np
import optpess as op
import pytest
from optpess import zoo


def test_a_plan_says_which_limits_bind():
    plan = op.solve(zoo.pair())
    assert repr(plan) == (
        "Plan(value=0.822917, costs=[0.6], limits=[0.6], binding=[0], engine='parametric')"
    )
    assert plan.binding.tolist() == [True]
    free = op.solve(zoo.pair(), cost_limit=2.0)
    assert free.binding.tolist() == [False]
    assert "binding=none" in repr(free)


@pytest.mark.parametrize("engine", ["highs", "columns"])
def test_each_of_several_limits_binds_or_not(engine):
    model = zoo.inventory_stock_out()
    assert op.solve(model, engine).binding.tolist() == [True, True]
    assert op.solve(model, engine, cost_limit=[2.5, 7.0]).binding.tolist() == [True, False]


@pytest.mark.parametrize("width", [1e-6, 1.0, 1e6])
def test_whether_a_limit_binds_does_not_depend_on_the_unit_of_cost(width):
    pair = zoo.pair()
    model = op.CMDP.stationary(
        pair.transitions,
        pair.stored_rewards(),
        width * pair.stored_costs(),
        width * pair.cost_limits,
        pair.initial,
        horizon=2,
        cost_range=(0, width),
    )
    assert op.solve(model).binding.tolist() == [True]
    assert op.solve(model, cost_limit=2.0 * width).binding.tolist() == [False]
    signals = (model.rewards, model.costs, model.transitions, model.initial)
    assert op.solve_signals(*signals, model.cost_limits).binding.tolist() == [True]


def test_a_plan_is_a_table_in_a_notebook():
    plan = op.solve(zoo.inventory_stock_out(), cost_limit=[2.5, 7.0])
    html = plan._repr_html_()
    assert "style" not in html
    assert html.count("<tr>") == 3
    cells = re.findall(r"<td>(.*?)</td>", html)
    assert cells[:6] == ["0", "2.5", "2.5", f"{plan.certificate.slack[0]:.6g}", "yes", cells[5]]
    assert cells[5] == f"{plan.multipliers[0]:.6g}"
    assert cells[10] == "no"


def test_a_notebook_shows_a_part_of_many_constraints():
    model = zoo.pair()
    many = op.CMDP.stationary(
        model.transitions,
        model.stored_rewards(),
        np.repeat(model.stored_costs(), 30, axis=0),
        np.full(30, 0.6),
        model.initial,
        horizon=2,
    )
    plan = op.solve(many)
    assert "and 10 more constraints" in plan._repr_html_()
    assert len(repr(plan)) < 300


def test_results_are_a_line_each():
    model = zoo.media()
    centre = np.stack([model.transitions.to_array()] * 10)
    pair = op.solve_extended(model.rewards, model.costs[0], centre, 0.1 * centre, model.initial, 5.0)
    plan = op.solve(model)
    for result in (plan, plan.certificate, op.solve_unconstrained(model), op.frontier(model), pair):
        assert "\n" not in repr(result)
        assert len(repr(result)) < 160
        assert repr(result).startswith(type(result).__name__ + "(")
    assert repr(op.solve_least_cost(zoo.pair())) == "Endpoint(value=0.27, costs=[0.135])"
