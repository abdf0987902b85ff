"""What objects show at the prompt and in notebooks: short, whatever they hold, and safe to show."""

import inspect
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from html.parser import HTMLParser

import numpy as np
import optpess as op
import pytest

LONGEST, MOST_LINES = 1000, 10
H, S, A, M = 20, 30, 4, 40  # large enough that arrays would fill the screen
LIMITS = tuple(np.linspace(8.0, 12.0, M).tolist())
COSTS = tuple(np.linspace(4.0, 6.0, M).tolist())
pytestmark = pytest.mark.filterwarnings(
    "ignore::optpess.GuaranteeWarning", "ignore:this run is expected"
)


@cache
def garnet():
    return op.zoo.problem("garnet", num_states=S, num_actions=A, horizon=H)


def told():
    model = garnet().model
    return {"shape": model.shape, "initial": model.initial}


@cache
def mix():
    return op.OptPessMix(baseline=garnet().baseline, **told())


def lp(**changes):
    return op.OptPessLP(**told() | {"baseline": garnet().baseline, "num_episodes": 200} | changes)


@cache
def many_limits():
    """A model with many limits, in units of their own."""
    model = garnet().model
    return op.CMDP.stationary(
        model.transitions,
        model.stored_rewards(),
        np.repeat(model.stored_costs(), M, axis=0) * np.linspace(0.5, 1.0, M)[:, None, None],
        np.array(LIMITS),
        model.initial,
        horizon=H,
        cost_range=[(0.0, 1.0 + m) for m in range(M)],
    )


@cache
def mix_of_many():
    baseline = op.SafeBaseline(garnet().safe_policy, op.SafetyMargin(LIMITS, COSTS))
    return op.OptPessMix(
        baseline=baseline, knowledge=op.Knowledge(support=np.ones((S, A, S), bool)), **told()
    )


@cache
def deployed():
    return mix_of_many().next_policy() if mix_of_many().pending is None else mix_of_many().pending


@cache
def run():
    return op.simulate(garnet().model, lp(), replicates=3, trace=True, audit=True, progress=False)


@cache
def run_of_mix():
    return op.simulate(garnet().model, mix(), episodes=50, replicates=12, progress=False)


@cache
def void_run():
    baseline = op.SafeBaseline(garnet().safe_policy, op.SafetyMargin(8.0, 0.001))
    model = op.CMDP.stationary(
        garnet().model.transitions,
        garnet().model.stored_rewards(),
        garnet().model.stored_costs(),
        8.0,
        garnet().model.initial,
        horizon=H,
    )
    return op.simulate(model, lp(baseline=baseline), episodes=20, progress=False)


@cache
def comparison(count=12):
    learners = {f"learner {i} & <b>" + "x" * 10 * i: lp() for i in range(count)}
    return op.compare(garnet().model, learners, replicates=2, episodes=20, progress=False)


@cache
def staged():
    return op.StagedRollout(cost_limit=LIMITS, baseline_cost=COSTS, max_episode_cost=[40.0] * M)


@cache
def environment():
    pytest.importorskip("gymnasium")
    return op.environments.as_gymnasium(garnet().model)


@cache
def rollout():
    learner = op.OptPessMix(baseline=garnet().baseline, **told())
    return op.rollout(learner, environment(), episodes=60, progress=False)


@cache
def episode():
    seen, learner = [], op.OptPessMix(baseline=garnet().baseline, **told())
    op.rollout(learner, environment(), episodes=1, callback=seen.append, progress=False)
    return seen[0]


@cache
def extended():
    model = op.zoo.media()
    centre = np.stack([model.transitions.to_array()] * 10)
    return op.solve_extended(model.rewards, model.costs[0], centre, 0.1 * centre, model.initial, 5.0)


def reproduction():
    return op.Reproduction(run(), run(), tuple(f"field_{i}" for i in range(30)))


def report():
    found = tuple(op.environments.EnvironmentFinding("error", f"fault {i}") for i in range(30))
    return op.environments.EnvironmentReport("an environment", found, 3, 60)


# What is shown: how to make it. Every public class with instances has a row.
@cache
def study():
    problem = op.zoo.problem("pair")
    names = {f"problem {number} with a long name": problem for number in range(12)}
    return op.Study(names, {"safe": study_learner}, replicates=2)


def study_learner(problem):
    return op.AlwaysBaseline(
        shape=problem.model.shape,
        initial=problem.model.initial,
        baseline=problem.baseline,
        num_episodes=10,
    )


@cache
def study_result():
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        return op.sweep(study(), folder, executor=pool, progress=False)


OBJECTS = {
    "AlwaysBaseline": lambda: op.AlwaysBaseline(baseline=garnet().baseline, num_episodes=100, **told()),
    "Bernoulli": op.Bernoulli,
    "BoundedViolation": lambda: op.BoundedViolation(0.95, 10**15, 10**9),
    "CMDP": lambda: garnet().model,
    "CMDP of many limits": many_limits,
    "CUCRL": lambda: op.CUCRL(
        transitions=garnet().model.transitions,
        baseline=garnet().baseline,
        num_episodes=100,
        **told(),
    ),
    "Certificate": lambda: deployed().certificate,
    "Comparison": comparison,
    "Deployment": deployed,
    "Deterministic": op.Deterministic,
    "Endpoint": lambda: op.solve_unconstrained(many_limits()),
    "Episode": episode,
    "Estimates": lambda: mix().estimates,
    "Exploration": op.Exploration,
    "ExtendedPlan": extended,
    "Finding": lambda: next(iter(run().audits[0].values())),
    "Forecast": lambda: op.forecast(garnet().model, lp()),
    "Frontier": lambda: op.frontier(garnet().model),
    "Gaussian": lambda: op.Gaussian(0.125),
    "Knowledge": lambda: op.Knowledge(
        True, np.zeros((H, S, A)), [np.zeros((S, A))] * M, np.ones((S, A, S), bool)
    ),
    "Member": lambda: deployed().members[0],
    "Mixture": lambda: deployed().mixture,
    "OptPessLP": lp,
    "OptPessMix": mix_of_many,
    "PaperRadius": op.PaperRadius,
    "Plan": lambda: op.solve(garnet().model),
    "PolicyBounds": lambda: op.certify(garnet().safe_policy, mix_of_many()),
    "Progress": lambda: mix().progress,
    "Reevaluation": lambda: op.solve(garnet().model).certificate,
    "Reproduction": reproduction,
    "Rollout": rollout,
    "RolloutCertificate": lambda: staged().certificate,
    "Run": run,
    "Run of mixtures": run_of_mix,
    "Run without a guarantee": void_run,
    "SOPS": lambda: op.SOPS(baseline=garnet().baseline, num_episodes=100, **told()),
    "SafeBaseline": lambda: garnet().baseline,
    "SafeBaseline of many margins": lambda: op.SafeBaseline(
        garnet().safe_policy, [op.SafetyMargin(1.0, 0.5)] * M
    ),
    "SafeBaseline of a margin of many": lambda: op.SafeBaseline(
        garnet().safe_policy, op.SafetyMargin(LIMITS, COSTS)
    ),
    "SafeBaseline to be estimated": lambda: op.SafeBaseline.estimated(garnet().safe_policy, LIMITS),
    "SafeMixture": lambda: op.SafeMixture(0.95, ("stationary", "rewards", "costs", "support")),
    "SafetyMargin": lambda: op.SafetyMargin(1.0, 0.5),
    "SafetyMargin of many": lambda: op.SafetyMargin(LIMITS, COSTS),
    "Scaled": lambda: op.Scaled(0.1),
    "Shape": lambda: garnet().model.shape,
    "Sharp": op.Sharp,
    "Signals": lambda: lp().signals,
    "StagedRollout": staged,
    "Study": study,
    "StudyResult": study_result,
    "SubGaussianRadius": op.SubGaussianRadius,
    "Theorem": op.Theorem,
    "Trace": lambda: run().traces[0],
    "Transitions": lambda: garnet().model.transitions,
    "Uniform": lambda: op.Uniform(0.125),
    "Units": lambda: many_limits().units,
    "ZeroViolation": lambda: op.ZeroViolation(0.95),
    "environments.EnvironmentFinding": lambda: report().findings[0],
    "environments.EnvironmentReport": report,
    "environments.as_gymnasium": environment,
    "zoo.Problem": garnet,
} | {
    name: lambda name=name: getattr(op, name)(
        margin=op.SafetyMargin(8.0, 4.5), num_episodes=100, **told()
    )
    for name in (
        "OPDOP",
        "OptCMDP",
        "OptCMDPBonus",
        "OptDualCMDP",
        "OptPessPrimalDual",
        "OptPrimalDualCMDP",
        "UnconstrainedOptimistic",
    )
}


@pytest.mark.parametrize("what", OBJECTS)
def test_an_object_is_shown_in_a_few_lines_whatever_its_size(what):
    shown = OBJECTS[what]()
    for text in (repr(shown), str(shown)):
        assert len(text) <= LONGEST
        assert 1 <= len(text.splitlines()) <= MOST_LINES
        assert "object at 0x" not in text


def test_every_public_class_is_in_the_table():
    classes = {name for name in op.__all__ if inspect.isclass(getattr(op, name))}
    errors = {name for name in classes if issubclass(getattr(op, name), BaseException)}
    assert classes - errors - {what.split(" ")[0] for what in OBJECTS} == {"Learner"}


# Values that are a call keep it, unless they are long.
CALLS = {
    "a margin": op.SafetyMargin(1.0, 0.5),
    "a margin of three": op.SafetyMargin((1.0, 2.0, 3.0), (0.5, 0.25, 0.125)),
    "units": op.Units((-1.0, 2.0), ((0.0, 4.0), (0.0, 5.0))),
    "a certificate": op.Certificate([0.5, 1 / 3], [0.75, 0.5], 1e-9),
    "a finding": op.Finding(3, 1, 2, 0.5),
    "a mixture's promise": op.SafeMixture(0.95, ("stationary",)),
    "an exploration": op.Exploration(0.1, 0.01, 2.0),
    "a report's line": op.environments.EnvironmentFinding("error", "a fault"),
}


@pytest.mark.parametrize("what", CALLS)
def test_the_repr_of_a_value_is_a_call_that_makes_it(what):
    names = vars(op) | {"array": np.array, "EnvironmentFinding": op.environments.EnvironmentFinding}
    again = eval(repr(CALLS[what]), names)
    assert repr(again) == repr(CALLS[what])
    if what != "a certificate":  # NumPy prints eight digits
        assert again == CALLS[what]


def test_long_values_say_how_many_numbers_they_hold():
    assert "(8.0, 8.102564102564102, 8.205128205128204, ... 40 in all)" in repr(
        op.SafetyMargin(LIMITS, COSTS)
    )
    assert "((0.0, 1.0), (0.0, 2.0), (0.0, 3.0), ... 40 in all)" in repr(many_limits().units)


def test_a_baseline_shows_its_shape_and_what_it_costs():
    policy = np.tile([1.0, 0.0], (2, 2, 1))
    margin = op.SafetyMargin(0.6, 0.135)
    assert repr(op.SafeBaseline(policy, margin)) == f"SafeBaseline(policy [2, 2, 2], margin={margin})"
    assert repr(op.SafeBaseline(policy, [margin, margin])) == (
        "SafeBaseline(policy [2, 2, 2], cost_limits=(0.6, 0.6), safe_costs=(0.135, 0.135))"
    )
    assert repr(op.SafeBaseline.estimated(policy, 0.6, radius=op.PaperRadius())) == (
        "SafeBaseline.estimated(policy [2, 2, 2], cost_limit=0.6, radius=PaperRadius())"
    )


# Runs, at a glance


def test_a_printed_run_answers_what_was_asked_of_it():
    made = run_of_mix()
    text = str(made)
    assert text.splitlines()[0] == "OptPess-Mix: 12 replicates of 50 episodes"
    assert "none in 600 episodes" in text
    gain = made.gain[:, -1]
    assert f"{gain.mean():.4g} ± {gain.std(ddof=1) / np.sqrt(12):.2g}, " in text
    assert f"{made.baseline_episodes.sum() / 600:.1%} of the episodes" in text
    assert text.splitlines()[-1].strip() == f"guarantee: {made.guarantee}"
    assert f"gain {gain.mean():.4g}" in repr(made)


def test_a_printed_run_says_why_nothing_is_guaranteed_and_how_bad_it_was():
    made = void_run()
    assert f"no guarantee: {made.void_because}" in str(made)
    assert made.void_because in repr(made)
    greedy = op.UnconstrainedOptimistic(
        margin=garnet().baseline.margin, num_episodes=300, confidence=op.Scaled(1e-3), **told()
    )
    scaled = op.simulate(garnet().model, greedy, progress=False)
    assert "no guarantee: none of the theorems covers the learner's arguments" in str(scaled)
    assert scaled.violating_episodes.sum() > 0
    count, worst = scaled.violating_episodes.sum(), scaled.worst_violation.max()
    assert f"{count} of 300 episodes above the limit, by at most {worst:.4g}" in str(scaled)


def test_a_printed_comparison_is_its_table_and_names_the_rest():
    lines = str(comparison(3)).splitlines()
    assert lines[0] == "3 learners, 2 replicates of 20 episodes"
    assert lines[1].split()[:3] == ["learner", "regret", "gain"]
    assert [line.split()[1] for line in lines[2:]] == ["0", "1", "2"]
    assert str(comparison()).splitlines()[-1] == "and 5 more learners"
    assert "12 in all" in repr(comparison())


# Notebooks


class Page(HTMLParser):
    """Checks that tags are closed in order, and keeps texts and cells."""

    def __init__(self, html):
        super().__init__()
        self.open, self.cells, self.text, self.tags = [], [], "", set()
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert attributes == []  # no styles, scripts or colours: the notebook has its own
        self.open.append(tag)
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open[-1:] in (["td"], ["th"]):
            self.cells[-1] += data


@pytest.mark.parametrize("make", [run, run_of_mix, void_run, comparison, rollout, OBJECTS["Plan"]])
def test_a_notebook_shows_a_well_formed_plain_page(make):
    page = Page(make()._repr_html_())
    assert page.tags <= {"p", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
    assert len(page.text) < 5000


def test_a_run_in_a_notebook_has_totals_guarantee_and_folded_parameters():
    made = run_of_mix()
    page, unfolded = Page(made._repr_html_()), made._repr_html_().split("<details>")[0]
    assert "OptPess-Mix: 12 replicates of 50 episodes" in page.text
    at = page.cells.index("gain over the baseline")
    assert page.cells[at + 1] == f"{made.gain[:, -1].mean():.4g}"
    assert f"guarantee: {made.guarantee}" in page.text
    assert page.cells[page.cells.index("algorithm") + 1] == "OptPess-Mix"
    assert "failure_probability" not in unfolded
    assert f"no guarantee: {void_run().void_because}" in Page(void_run()._repr_html_()).text


def test_a_comparison_in_a_notebook_has_a_row_for_each_learner():
    page = Page(comparison()._repr_html_())
    for name in comparison().runs:
        assert name in page.cells  # escaped, and read back
    assert "<b>" not in comparison()._repr_html_()
    assert page.cells[page.cells.index("num_episodes") + 1] == "200"


def test_a_comparison_of_many_learners_shows_some_rows():
    many = {f"number {i}": run() for i in range(50)}
    many = op.Comparison(many, dict.fromkeys(many, 1.0))
    page = Page(many._repr_html_())
    assert "and 30 more learners" in page.text
    assert "number 49" not in page.cells


def test_a_rollout_in_a_notebook_has_totals_and_parameters():
    page = Page(rollout()._repr_html_())
    assert "OptPess-Mix: 60 episodes" in page.text
    assert page.cells[page.cells.index("mean return") + 1] == f"{rollout().returns.mean():.4g}"
    assert "algorithm" in page.cells


def test_missing_actions_are_counted_not_listed():
    mask = np.ones((2, 2), bool)
    mask[1, 1] = False
    pair = op.zoo.problem("pair")
    model = op.CMDP.stationary(
        pair.model.transitions,
        pair.model.stored_rewards(),
        pair.model.stored_costs(),
        0.6,
        pair.model.initial,
        horizon=2,
        actions=mask,
    )
    learner = op.OptPessMix(
        shape=model.shape, initial=model.initial, baseline=pair.baseline, actions=mask
    )
    made = op.simulate(model, learner, episodes=5, progress=False)
    page = Page(made._repr_html_())
    assert page.cells[page.cells.index("actions") + 1] == "1 of 4 missing"
    assert "| actions | 1 of 4 missing |" in made.to_markdown()


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "a & b", '"', "é ± λ"])
def test_whatever_a_learner_is_called_is_shown_as_text(text):
    found = op.Comparison({text: run()}, {text: 1.0})
    html = found._repr_html_()
    assert "<script" not in html
    assert text in Page(html).cells
    assert not re.search(r"&(?!amp;|lt;|gt;|quot;|#)", html)
