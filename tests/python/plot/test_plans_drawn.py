"""Figures of plans and frontiers."""

import sys

import numpy as np
import optpess as op
import pytest

pytest.importorskip("matplotlib", reason="plots are an optional extra")

from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from optpess.plot import plot_frontier, plot_plan
from optpess.plot.style import COLOURS

from plot import cases


def cells(figure):
    """(colour, opacity, left, right, top) of every rectangle."""
    return [
        (
            to_hex(each.get_facecolor()[0]),
            each.get_alpha(),
            *path.vertices[:, 0][[0, 1]],
            path.vertices[0, 1],
        )
        for each in figure.axes[0].collections
        if isinstance(each, PolyCollection)
        for path in each.get_paths()
    ]


def test_every_state_and_step_has_the_colour_of_its_action():
    plan = op.solve(op.zoo.problem("media").model)
    drawn = cells(plan.plot())
    horizon, num_states, _ = plan.policy.shape
    for step in range(horizon):
        for state in range(num_states):
            widths = np.zeros(plan.policy.shape[2])
            for colour, _, left, right, top in drawn:
                if top == state - 0.5:
                    inside = min(right, step + 0.5) - max(left, step - 0.5)
                    widths[COLOURS.index(colour)] += max(inside, 0.0)
            np.testing.assert_allclose(widths, plan.policy[step, state], atol=1e-9)


def test_a_randomised_cell_is_divided_and_counted():
    plan = op.solve(op.zoo.pair())
    assert ((plan.policy > 0).sum(axis=2) > 1).sum() == 1
    figure = plan.plot()
    words = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert words == ["action 0", "action 1", "1 cell is divided:\nrandomised"]
    title = figure.axes[0].get_title("left")
    assert "reward 0.8229, cost 0.6 (limit 0.6) an episode" in title


def test_states_that_are_not_reached_are_pale():
    plan = op.solve(op.zoo.problem("media").model)
    reached = plan.occupancy.sum(axis=2) > 1e-9
    figure = plan.plot()
    pale = {(left, top) for _, opacity, left, _, top in cells(figure) if opacity < 0.5}
    assert (-0.5, 8.5) in pale  # the last state is not reached at the first step
    assert not reached[0, 9]
    assert "pale: not reached" in [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_of_many_states_those_visited_most_are_drawn_and_the_file_stays_small():
    model = op.zoo.garnet(60, 8, 120, successors=3, seed=1)
    plan = op.solve(model)
    figure = plot_plan(plan)
    assert "40 of 60 states, those visited most" in figure.axes[0].get_title("left")
    most = np.argsort(-plan.occupancy.sum(axis=(0, 2)), kind="stable")[:40]
    shown = {int(label.get_text()) for label in figure.axes[0].get_yticklabels()}
    assert shown <= set(most.tolist())
    assert len(list(cases.svg_of(figure).iter())) < 1000


def test_steps_are_counted_from_0_as_states_and_actions_are():
    axis = op.solve(op.zoo.problem("ring").model).plot().axes[0]
    first, last = axis.get_xlim()
    steps = [tick for tick in axis.get_xticks() if first < tick < last]
    assert steps == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("limits", ["inventory_three_limits", "cliff_grid_two_hazards"])
def test_plans_with_several_limits_are_drawn(limits):
    model = op.zoo.problem(limits).model
    figure = op.solve(model).plot()
    assert figure.axes[0].get_title("left").count("limit") == min(3, model.num_constraints)
    cases.svg_of(figure)


@pytest.mark.parametrize("name", ["inventory_three_limits", "lower_bound_a", "media"])
def test_title_and_key_of_a_plan_do_not_overlap_and_are_not_cut_off(name):
    figure = op.solve(op.zoo.problem(name).model).plot()
    figure.draw_without_rendering()
    axis = figure.axes[0]
    title = axis._left_title.get_window_extent()
    assert not title.overlaps(axis.get_legend().get_window_extent())
    assert title.x1 <= figure.bbox.x1


@pytest.mark.parametrize(
    "make",
    [lambda: op.solve(op.zoo.pair()), lambda: op.frontier(op.zoo.pair())],
    ids=["plan", "frontier"],
)
def test_without_matplotlib_the_extra_is_named(monkeypatch, make):
    shown = make()
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # importing it now fails
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install .*'\.\[plot\]'"):
        shown.plot()


def test_only_plans_are_drawn():
    with pytest.raises(op.InvalidInputError, match="plan is 3, of type int; it must be of type Plan"):
        plot_plan(3)


# Frontiers


@pytest.fixture(scope="module")
def frontier():
    return op.frontier(op.zoo.pair())


def test_a_frontier_has_its_vertices_the_limit_and_the_optimum(frontier):
    (axis,) = frontier.plot().axes
    curve, limit, star = cases.lines(axis)
    np.testing.assert_array_equal(curve.get_xdata(), frontier.costs)
    np.testing.assert_array_equal(curve.get_ydata(), frontier.values)
    assert list(limit.get_xdata()) == [cases.LIMIT] * 2
    optimum = op.solve(op.zoo.pair()).value
    np.testing.assert_allclose(star.get_xydata(), [(cases.LIMIT, optimum)])
    assert f"optimum {optimum:.4g}\nat the limit 0.6" in cases.texts(axis)
    assert axis.get_xlabel() == "expected cost an episode"
    assert axis.get_ylabel() == "expected reward an episode"


def test_above_the_last_vertex_the_best_reward_stays_as_it_is(frontier):
    (axis,) = frontier.plot(limit=2.0).axes
    beyond = cases.lines(axis)[2]
    np.testing.assert_array_equal(beyond.get_xdata(), [frontier.costs[-1], 2.0])
    np.testing.assert_array_equal(beyond.get_ydata(), [frontier.values[-1]] * 2)


def test_another_limit_can_be_marked(frontier):
    axis = plot_frontier(frontier, limit=1.0).axes[0]
    assert any("at the limit 1" in text for text in cases.texts(axis))
    below = plot_frontier(frontier, limit=0.01).axes[0]  # no policy costs so little
    assert not any("optimum" in text for text in cases.texts(below))


def test_a_frontier_of_vertices_alone_has_no_limit():
    bare = op.Frontier(np.array([[0.0, 0.0], [1.0, 2.0]]))
    assert bare.limit is None
    assert len(cases.lines(bare.plot().axes[0])) == 1


def test_a_path_is_what_was_deployed_with_a_dot_at_each_power_of_ten(frontier):
    run = cases.run("OptPessMix")
    axis = frontier.plot(path=run).axes[0]
    costs, values = np.median(run.deployed_cost[..., 0], axis=0), np.median(run.deployed_value, axis=0)
    path, dots = (line for line in cases.lines(axis) if to_hex(line.get_color()) == COLOURS[0])
    np.testing.assert_array_equal(path.get_xydata(), np.stack([costs, values], axis=1))
    places = np.searchsorted(run.episodes, [1, 10, 100, 300])
    np.testing.assert_array_equal(dots.get_xydata(), path.get_xydata()[places])
    assert {"OptPess-Mix", "300"} <= set(cases.texts(axis))


def test_several_paths_have_names_and_no_numbers(frontier):
    runs = {"mix": cases.run("OptPessMix"), "free": cases.run("UnconstrainedOptimistic")}
    words = set(cases.texts(frontier.plot(path=runs).axes[0]))
    assert {"mix", "free"} <= words
    assert "300" not in words


def test_a_path_must_have_one_constraint_and_deployed_costs(frontier):
    with pytest.raises(op.InvalidInputError, match="path has 3 constraints"):
        frontier.plot(path=cases.several_limits())
    with pytest.raises(op.InvalidInputError, match=r"path\['old'\] is a record of an earlier version"):
        frontier.plot(path={"old": cases.of_an_earlier_format(cases.run("OptPessLP"))})
    with pytest.raises(op.InvalidInputError, match="path is 3, of type int"):
        frontier.plot(path=3)
    with pytest.raises(op.InvalidInputError, match="limit is 'x'"):
        frontier.plot(limit="x")
