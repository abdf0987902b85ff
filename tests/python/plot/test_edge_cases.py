"""Records with little in them, or with odd numbers: all are drawn, without a warning."""

import numpy as np
import optpess as op
import pytest

pytest.importorskip("matplotlib", reason="plots are an optional extra")

from optpess.plot import pictures, plot_run, plot_runs

from plot import cases

COST, REWARD, GAIN, REGRET, ABOVE = range(5)


def losing_money():
    """A run in units with negative rewards and costs: both are moved down by 20."""
    run = cases.run("OptPessMix")
    costs = [name for name in cases.WINDOWS if "cost" in name]
    values = [name for name in cases.WINDOWS if "value" in name]
    names = (*costs, *values, "cost_limits", "baseline_costs", "baseline_value", "optimal_value")
    moved = {name: getattr(run, name) - 20.0 for name in (*names, "certified_cost")}
    return cases.changed(run, **moved, units=op.Units((-20.0, 0.0), ((-20.0, 0.0),)))


def one_episode():
    model = op.zoo.pair()
    return op.simulate(model, cases.learner("OptPessLP"), episodes=1, replicates=2, progress=False)


def with_multiplier(number):
    run = cases.run("OptPessPrimalDual")
    multiplier = run.multiplier.copy()
    multiplier[:, ::2] = number
    return cases.changed(run, multiplier=multiplier)


ODD = {
    "one replicate": lambda: cases.run("OptPessMix", replicates=1),
    "one record point": one_episode,
    "an earlier format": lambda: cases.of_an_earlier_format(cases.run("OptPessLP")),
    "an earlier format of mixtures": lambda: cases.of_an_earlier_format(cases.run("OptPessMix")),
    "always the baseline": lambda: cases.run("AlwaysBaseline"),
    "no baseline": lambda: cases.run("OPDOP"),
    "negative units": losing_money,
    "infinite multipliers": lambda: with_multiplier(np.inf),
    "multipliers that are no numbers": lambda: with_multiplier(np.nan),
    "only infinite multipliers": lambda: cases.changed(
        cases.run("OptPessPrimalDual"), multiplier=np.full((3, len(cases.run("OPDOP").episodes)), np.inf)
    ),
    "three limits": cases.several_limits,
    "void": lambda: cases.changed(cases.run("OptPessLP"), void_because="told wrong", guarantee=None),
    "no regret": lambda: cases.changed(
        cases.run("OPDOP"), reward_regret=-np.ones_like(cases.run("OPDOP").reward_regret)
    ),
}


@pytest.mark.parametrize("which", ODD)
def test_a_run_is_drawn_whatever_is_in_it(which):
    plot_run(ODD[which](), multiplier=True).draw_without_rendering()


@pytest.mark.parametrize("which", ["one record point", "an earlier format", "no regret"])
def test_small_panels_are_drawn_even_if_all_are_odd(which):
    runs = {f"number {n}": ODD[which]() for n in range(6)}
    plot_runs(runs, multiplier=True).draw_without_rendering()


def test_runs_that_differ_in_everything_are_drawn_together():
    chosen = ("one record point", "an earlier format", "no baseline", "negative units", "no regret")
    runs = {which: ODD[which]() for which in (*chosen, "three limits")}
    cases.svg_of(plot_runs(runs))
    assert [picture.name for picture in pictures(runs)][:5] == [
        "cost",
        "reward",
        "gain",
        "regret",
        "violations",
    ]


def test_one_replicate_has_no_band():
    axes = plot_run(cases.run("OPDOP", replicates=1)).axes
    assert len(axes[GAIN].collections) == len(axes[REGRET].collections) == 0


def test_one_record_point_is_a_dot():
    figure = plot_run(one_episode())
    (line, *_) = cases.lines(figure.axes[COST])
    assert line.get_marker() == "o"
    assert figure.axes[COST].get_xscale() == "linear"


def test_an_earlier_record_says_what_it_lacks():
    figure = plot_run(ODD["an earlier format"]())
    for place in (COST, REWARD):
        assert "earlier version" in cases.texts(figure.axes[place])[0]
    assert cases.texts(figure.axes[GAIN]) == ["no baseline\nto compare with"]
    assert figure.axes[REGRET].get_yscale() == "log"  # the regret is there


def test_a_run_that_no_other_has_a_baseline_for_gains_nothing():
    assert cases.texts(plot_run(cases.run("OPDOP")).axes[GAIN]) == ["no baseline\nto compare with"]


def test_runs_of_different_models_are_not_compared_with_the_baseline_of_another():
    other = cases.changed(cases.run("OPDOP"), optimal_value=7.0)
    gain = plot_runs({"mix": cases.run("OptPessMix"), "other": other}).axes[GAIN]
    assert "other: no baseline to compare with" in cases.texts(gain)


def test_regret_that_is_never_positive_is_said():
    regret = plot_run(ODD["no regret"]()).axes[REGRET]
    assert cases.texts(regret) == ["never above 0"]
    assert regret.get_yscale() == "linear"  # there is nothing whose logarithm could be taken


def test_infinite_multipliers_leave_gaps():
    run = with_multiplier(np.inf)
    (axis,) = [axis for axis in plot_run(run, multiplier=True).axes if "prices" in axis.get_ylabel()]
    heights = cases.lines(axis)[0].get_ydata()
    assert np.isnan(heights[::2]).all()
    assert np.isfinite(heights[1::2]).any()


def test_negative_costs_and_limits_keep_their_signs():
    cost, reward = plot_run(losing_money()).axes[:2]
    assert {"limit −19.4", "baseline −19.86"} <= set(cases.texts(cost))
    assert "optimum −19.18" in cases.texts(reward)
    assert cost.get_ylim()[0] < -19.4 < cost.get_ylim()[1] < 0.0


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("OptPess-Mix", "OptPess-Mix"),
        ("always the policy that is known to be safe", "always the policy that\nis known to be safe"),
        ("a" * 26, "a" * 26),
        ("first " + "x" * 80 + " last", "first xxxxxxxxxxxxxxx…\n…xxxxxxxxxxxxxxxx last"),
        ("two\nlines\tand a tab", "two lines and a tab"),
        ("cost $5 and $7", "cost $5 and $7"),
        ('<b> & "quotes"', '<b> & "quotes"'),
        ("", ""),
    ],
)
def test_names_are_shown_as_they_are_in_two_lines_at_most(name, shown):
    runs = {name: cases.run("OPDOP"), "other": cases.run("OptPessMix")}
    figure = plot_runs(runs)
    assert shown in cases.texts(figure.axes[COST])
    figure.draw_without_rendering()


def test_a_name_in_the_notation_of_mathematics_is_shown_as_it_is():
    runs = {r"$x_1$ and $\frac{$": cases.run("OPDOP"), "other": cases.run("OptPessMix")}
    for figure in (plot_runs(runs), *(picture.figure for picture in pictures(runs))):
        figure.draw_without_rendering()
        for axis in figure.axes:
            named = [label for label in axis.get_yticklabels() if "$" in label.get_text()]
            assert not any(label.get_parse_math() for label in named)


def test_a_remark_about_a_long_name_stays_in_its_panel():
    never = ODD["no regret"]()
    figure = plot_runs({"a name of many words that goes on and on": never, "b": cases.run("OPDOP")})
    figure.draw_without_rendering()
    regret = figure.axes[REGRET]
    (remark,) = [text for text in regret.texts if "never above 0" in " ".join(text.get_text().split())]
    assert remark.get_window_extent().x1 <= regret.get_window_extent().x1


def test_few_episodes_have_whole_numbers_at_their_ticks():
    two = op.simulate(
        op.zoo.pair(), cases.learner("OptPessMix"), episodes=2, replicates=2, progress=False
    )
    figure = plot_run(two)
    for place in (COST, REWARD, GAIN, REGRET):
        axis = figure.axes[place]
        first, last = axis.get_xlim()
        assert [tick for tick in axis.get_xticks() if first <= tick <= last] == [1, 2]
    # A root is a straight line on two logarithmic axes only.
    assert figure.axes[REGRET].get_xscale() == figure.axes[REGRET].get_yscale() == "log"


def test_one_mixture_is_not_several():
    one = op.simulate(
        op.zoo.pair(), cases.learner("OptPessMix"), episodes=1, replicates=2, progress=False
    )
    axis = cases.panel(plot_run(one), "Weight of the mixture")
    assert "OptPess-Mix\n1 mixture" in cases.texts(axis)


def test_large_units_are_written_with_powers_of_ten():
    run = cases.run("OptPessMix")
    names = [name for name in cases.WINDOWS if "cost" in name or "value" in name]
    more = ("cost_limits", "baseline_costs", "baseline_value", "optimal_value", "certified_cost")
    scaled = {name: getattr(run, name) * 5e6 for name in (*names, *more)}
    units = op.Units((0.0, 5e6), ((0.0, 5e6),))
    figure = plot_run(cases.changed(run, **scaled, worst_violation=run.worst_violation, units=units))
    said = [text for axis in figure.axes for text in cases.texts(axis)]
    assert {"limit 3 × 10⁶", "baseline 675,000"} <= set(said)
    assert not [text for text in said if "e+" in text]


def test_a_multiplier_of_a_limit_that_does_not_bind_says_so():
    model = op.zoo.pair()
    loose = op.CMDP(model.transitions, model.rewards, model.costs, [2.0], model.initial)
    margin = op.SafetyMargin(cost_limit=2.0, safe_cost=0.135)
    learner = op.OPDOP(
        shape=loose.shape,
        initial=loose.initial,
        margin=margin,
        num_episodes=50,
        confidence=op.Scaled(0.02),
    )
    run = op.simulate(loose, learner, progress=False)
    changed = cases.changed(run, multiplier=run.multiplier + 1.0)
    (axis,) = [
        each
        for each in plot_run(changed, multiplier=True).axes
        if each.get_title("left") == "Multiplier"
    ]
    assert axis.get_ylabel() == "raw: the limit\ndoes not bind"


def test_a_character_that_the_font_lacks_is_no_warning_in_a_picture():
    made = pictures({"学習者": cases.run("OPDOP")})
    assert "学習者" in made[0].svg()
