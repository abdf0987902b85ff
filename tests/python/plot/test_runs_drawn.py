"""Figures of runs: what is drawn, against what, on which axes, and which words stand beside it."""

import io
from itertools import pairwise

import numpy as np
import optpess as op
import pytest

pytest.importorskip("matplotlib", reason="plots are an optional extra")

from matplotlib.colors import to_hex
from optpess.plot import plot_run, plot_runs
from optpess.plot.style import styles_of

from plot import cases

FEW = ("OptPessMix", "OptPessLP", "OptPessPrimalDual", "UnconstrainedOptimistic")
MAIN = [
    "Cost of what was deployed",
    "Reward of what was deployed",
    "Summed gain over the baseline",
    "Regret of reward (positive part)",
    "Episodes above the limit",
]


@pytest.fixture(scope="module")
def few():
    return {name: cases.run(name) for name in FEW}


@pytest.fixture(scope="module")
def figure(few):
    return plot_runs(few)


@pytest.fixture(scope="module")
def many():
    made = {name: cases.run(name) for name in (*FEW, "AlwaysBaseline", "OPDOP")}
    return made | {f"number {n}": cases.run("OptPessPrimalDual", seed=n) for n in range(6)}


@pytest.fixture(scope="module")
def large(many):
    return plot_runs(many)


def test_panels_come_in_their_order(figure):
    titles = [axis.get_title("left") for axis in figure.axes]
    assert titles[:5] == MAIN
    assert titles[5:] == [
        "Weight of the mixture",
        "Certified cost of the mixture",
        "Leaving the baseline",
    ]


def test_axes_have_units_and_scales_of_which_none_is_symlog(figure):
    scales = {axis.get_title("left"): (axis.get_xscale(), axis.get_yscale()) for axis in figure.axes}
    assert [scales[title] for title in MAIN[:4]] == [
        ("log", "linear"),
        ("log", "linear"),
        ("linear", "linear"),  # a sum: its slope is a rate
        ("log", "log"),
    ]
    assert {scale for pair in scales.values() for scale in pair} == {"linear", "log"}
    units = ["expected cost\nan episode", "expected reward\nan episode", *["reward, summed"] * 2]
    assert [axis.get_ylabel() for axis in figure.axes[:4]] == units
    assert {axis.get_xlabel() for axis in figure.axes[:4]} == {"episodes"}
    assert cases.panel(figure, MAIN[4]).get_xlabel() == "share of the episodes"


def test_names_stand_at_the_ends_of_lines_and_there_is_no_legend(figure, few):
    assert not figure.legends
    for axis in figure.axes[:4]:
        assert axis.get_legend() is None
    cost = cases.panel(figure, MAIN[0])
    assert set(cases.texts(cost)) == {*few, "limit 0.6", "baseline 0.135"}
    assert all(text.get_position()[0] > 1.0 for text in cost.texts)
    heights = sorted(text.get_position()[1] for text in cost.texts)
    assert min(np.diff(heights)) > 0.04  # not upon each other


def test_the_line_is_the_median_and_bands_reach_the_least_and_the_greatest_episode(few):
    run = few["OptPessLP"]
    axis = cases.panel(plot_run(run), MAIN[0])
    line = cases.lines(axis)[0]
    np.testing.assert_array_equal(line.get_xdata(), run.episodes)
    np.testing.assert_array_equal(line.get_ydata(), np.median(run.deployed_cost[..., 0], axis=0))
    envelope, band = axis.collections
    for drawn, low, high in (
        (envelope, run.deployed_cost_least, run.deployed_cost_greatest),
        (band, run.deployed_cost, run.deployed_cost),
    ):
        corners = drawn.get_paths()[0].vertices
        at_end = corners[corners[:, 0] == run.episodes[-1], 1]
        assert at_end.min() == low[:, -1].min()
        assert at_end.max() == high[:, -1].max()


def test_the_limit_is_solid_and_the_baseline_dashed(figure, few):
    cost, reward, gain, _ = figure.axes[:4]
    run = few["OptPessMix"]
    for axis, solid, dashed in (
        (cost, cases.LIMIT, run.baseline_costs[0]),
        (reward, run.optimal_value, run.baseline_value),
    ):
        assert [line.get_linestyle() for line in cases.straight(axis, solid)] == ["-"]
        assert "--" in {line.get_linestyle() for line in cases.straight(axis, dashed)}
        assert axis.get_ylim()[0] < dashed < solid < axis.get_ylim()[1]
    assert cases.straight(gain, 0.0)


def test_a_learner_without_a_baseline_gains_over_that_of_the_others(figure, few):
    gain = cases.panel(figure, MAIN[2])
    free, mix = few["UnconstrainedOptimistic"], few["OptPessMix"]
    assert free.gain is None
    expected = np.median(free.reward_regret, axis=0)
    expected = (free.optimal_value - mix.baseline_value) * free.episodes - expected
    drawn = [line for line in cases.lines(gain) if len(line.get_ydata()) == len(expected)]
    assert any(np.allclose(line.get_ydata(), expected) for line in drawn)


def test_only_positive_regret_is_drawn_and_the_rest_is_said(figure, few):
    regret = cases.panel(figure, MAIN[3])
    assert np.median(few["UnconstrainedOptimistic"].reward_regret, axis=0)[-1] < 0.0
    said = [" ".join(text.split()) for text in cases.texts(regret)]
    assert any("UnconstrainedOptimistic: not above 0 after episode" in text for text in said)
    for line in cases.lines(regret):
        heights = np.asarray(line.get_ydata(), dtype=float)
        assert (heights[np.isfinite(heights)] > 0.0).all()


def test_the_guide_of_the_regret_has_the_slope_of_a_square_root(figure):
    regret = cases.panel(figure, MAIN[3])
    (guide,) = [line for line in cases.lines(regret) if len(line.get_xdata()) == 2]
    slope = np.diff(np.log(guide.get_ydata())) / np.diff(np.log(guide.get_xdata()))
    np.testing.assert_allclose(slope, 0.5)
    assert "slope of √K" in cases.texts(regret)


def test_the_guide_of_the_regret_crosses_no_curve_that_reaches_the_end():
    regret = plot_run(cases.run("AlwaysBaseline")).axes[3]
    curve, guide = cases.lines(regret)
    (start, stop), (low, high) = guide.get_data()
    episodes, heights = (np.asarray(each, dtype=float) for each in curve.get_data())
    beside = np.interp(np.log(episodes), np.log([start, stop]), np.log([low, high]))
    assert (np.log(heights) > beside)[episodes >= start].all()
    assert start <= stop / 10.0
    assert low > regret.get_ylim()[0]


def test_violations_are_words_and_bars(figure, few):
    axis = cases.panel(figure, MAIN[4])
    shares = [run.violating_episodes.mean() / cases.EPISODES for run in few.values()]
    np.testing.assert_allclose([bar.get_width() for bar in axis.patches], shares)
    words = dict(zip(few, cases.texts(axis), strict=True))
    assert words["OptPessMix"] == "none"
    assert " of episodes, by at most " in words["UnconstrainedOptimistic"]


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((0, 0), "none"),
        ((162, 162), "54 % of episodes, by at most 0.25"),
        ((1, 0), "1 of 600 episodes, by at most 0.25"),
        ((300, 299), "all but 1 of 600 episodes, by at most 0.25"),
        ((300, 300), "all episodes, by at most 0.25"),
    ],
)
def test_words_do_not_round_a_violation_away(counts, words):
    run = cases.run("OptPessPrimalDual", replicates=2)
    worst = np.array([0.25, 0.1])
    axis = cases.panel(
        plot_run(cases.changed(run, violating_episodes=np.array(counts), worst_violation=worst)), MAIN[4]
    )
    assert cases.texts(axis) == [words]


def test_a_void_guarantee_is_said(few):
    run = cases.changed(few["OptPessMix"], void_because="the baseline costs 0.7", guarantee=None)
    assert cases.texts(cases.panel(plot_run(run), MAIN[4])) == ["none; guarantee void"]


def test_the_multiplier_is_drawn_on_request_in_prices_of_the_plan(few):
    run = few["OptPessPrimalDual"]
    assert "Multiplier" not in {axis.get_title("left") for axis in plot_run(run).axes}
    price = op.solve(op.zoo.pair()).multipliers[0]
    (axis,) = [
        axis
        for axis in run.plot(multiplier=True).axes
        if axis.get_title("left").startswith("Multiplier")
    ]
    assert axis.get_ylabel() == "in prices of the plan"
    np.testing.assert_allclose(
        cases.lines(axis)[0].get_ydata(), np.median(run.multiplier, axis=0) / price
    )
    assert "price of the plan" in cases.texts(axis)
    low, high = axis.get_ylim()
    assert low < 1.0 < high


def test_a_learner_without_a_multiplier_is_said_to_have_none():
    figure = cases.run("AlwaysBaseline").plot(multiplier=True)
    axis = cases.panel(figure, "Multiplier")
    assert cases.texts(axis) == ["no multiplier"]
    assert axis.get_ylabel() == "in prices of the plan"  # not that a price is unknown


def test_a_multiplier_without_a_known_model_is_drawn_as_it_is():
    run = cases.changed(cases.run("OptPessPrimalDual"), _origin=None)
    axis = plot_run(run, multiplier=True).axes[5]
    assert axis.get_ylabel().startswith("raw")
    np.testing.assert_allclose(cases.lines(axis)[0].get_ydata(), np.median(run.multiplier, axis=0))


def test_the_mixture_has_weight_certified_cost_and_how_often_it_changed(few):
    run = few["OptPessMix"]
    figure = run.plot()
    weight, certified = (
        cases.panel(figure, title)
        for title in (
            "Weight of the mixture",
            "Certified cost of the mixture",
        )
    )
    np.testing.assert_array_equal(cases.lines(weight)[0].get_ydata(), np.median(run.weight, axis=0))
    least, most = run.mixtures.min(), run.mixtures.max()
    assert f"{least} to {most} mixtures" in cases.texts(weight)[0]
    expected = np.median(run.certified_cost[..., 0], axis=0)
    np.testing.assert_array_equal(cases.lines(certified)[0].get_ydata(), expected)
    assert "limit 0.6" in cases.texts(certified)
    assert weight.get_ylim()[0] <= 0.0
    assert weight.get_ylim()[1] >= 1.0


def test_the_gate_and_the_horizon_are_marked(figure, few):
    axis = cases.panel(figure, "Leaving the baseline")
    names = [label.get_text() for label in axis.get_yticklabels()]
    assert names == ["OptPessMix", "OptPessLP", "OptPessPrimalDual"]
    model = op.zoo.pair()
    gate = op.forecast(model, cases.learner("OptPessLP")).would_leave_baseline + 1
    horizon = op.forecast(model, cases.learner("OptPessPrimalDual")).tightening_horizon
    marks = {line.get_marker(): line.get_xdata() for line in cases.lines(axis)}
    assert marks["D"] == [gate]
    assert marks["s"] == [horizon]
    left = [line for line in cases.lines(axis) if line.get_marker() == "o"][1]
    np.testing.assert_array_equal(left.get_xdata(), few["OptPessLP"].first_planned + 1)
    assert f"gate expected at {gate}" in cases.texts(axis)[1]


def test_more_than_five_learners_have_small_panels_in_rows(many, large):
    table = [axis for axis in large.axes if axis.get_subplotspec().get_gridspec().nrows == len(many)]
    assert len(table) == len(many) * 5
    names = [axis.get_ylabel() for axis in table if axis.get_ylabel()]
    assert names == list(many)
    rows = np.array(table).reshape(len(many), 5)
    for column in rows.T:
        assert len({(axis.get_ylim(), axis.get_yscale()) for axis in column}) == 1
    words = [axis.texts[0].get_text() for axis in rows[:, 4]]
    assert words[0] == "none"
    assert "limit 0.6" in rows[0, 0].get_title("left")
    assert "slope of √K" in rows[0, 3].get_title("left")
    # The other learners are in the background of sums, and of nothing else.
    assert len(rows[0, 2].get_lines()) > len(many)
    assert len(rows[0, 0].get_lines()) == 3  # the learner, the limit and the baseline


def test_no_two_learners_are_drawn_alike(many, large):
    # The ninth run was once left out, for lack of a ninth colour.
    column = [axis for axis in large.axes if axis.get_ylabel() in many]
    looks = set()
    for axis in column:
        (line,) = (line for line in cases.lines(axis) if line.get_linewidth() == 2.0)
        looks.add((to_hex(line.get_color()), str(line._unscaled_dash_pattern)))
    assert len(looks) == len(many) == 12


def test_thirty_styles_are_different_and_neighbours_differ_in_colour_and_dashes():
    styles = list(styles_of(map(str, range(31))).values())
    assert len(set(styles[:30])) == 30
    for one, next_one in pairwise(styles):
        assert one.colour != next_one.colour
        assert one.dashes != next_one.dashes


def test_several_constraints_have_a_panel_each():
    run = cases.several_limits()
    figure = plot_run(run)
    for m, limit in enumerate(run.cost_limits):
        axis = cases.panel(figure, f"Cost {m} of what was deployed")
        expected = np.median(run.deployed_cost[..., m], axis=0)
        np.testing.assert_array_equal(cases.lines(axis)[0].get_ydata(), expected)
        assert f"limit {limit:g}" in cases.texts(axis)


def test_of_many_constraints_those_nearest_to_their_limits_are_drawn():
    run, count = cases.several_limits(), 6
    near = np.array([0.0, 0.9, 0.1, 0.8, 0.7, 0.95])

    def repeated(costs):
        return near * np.ones((*costs.shape[:2], count))

    windows = {name: repeated(getattr(run, name)) for name in cases.WINDOWS if "cost" in name}
    units = op.Units((0.0, 1.0), ((0.0, 1.0),) * count)
    figure = plot_run(
        cases.changed(
            run, **windows, cost_limits=np.ones(count), baseline_costs=np.zeros(count), units=units
        )
    )
    titles = [axis.get_title("left") for axis in figure.axes]
    drawn = [title for title in titles if title.startswith("Cost ")]
    assert drawn == [f"Cost {m} (of 6) of what was deployed" for m in (1, 3, 4, 5)]


def test_comparison_and_run_draw_the_same_panels_as_the_functions(few, figure):
    comparison = op.Comparison(few, dict.fromkeys(few, 1.0))
    titles = [axis.get_title("left") for axis in comparison.plot().axes]
    assert titles == [axis.get_title("left") for axis in figure.axes]
    with_multiplier = [axis.get_title("left") for axis in comparison.plot(multiplier=True).axes]
    assert len(with_multiplier) == len(titles) + 1


def test_settings_of_the_user_do_not_change_a_figure_and_are_left_alone(few):
    import matplotlib as mpl

    def drawn():
        stream = io.BytesIO()
        plot_run(few["OptPessLP"]).savefig(stream, format="png", dpi=40)
        return stream.getvalue()

    plain = drawn()
    with mpl.rc_context({"font.size": 30.0, "lines.linewidth": 9.0, "axes.grid": False}):
        assert drawn() == plain
        assert mpl.rcParams["font.size"] == 30.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({},), "runs is empty"),
        (([],), "runs is \\[\\], of type list; it must be a dictionary"),
        (({"a": 3},), r"runs\['a'\] is 3, of type int; it must be of type Run"),
        (({3: 3},), "a name in runs is 3"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(op.InvalidInputError, match=message):
        plot_runs(*arguments)


def test_a_multiplier_must_be_yes_or_no(few):
    with pytest.raises(op.InvalidInputError, match="multiplier is 'no', of type str"):
        plot_runs(few, multiplier="no")
