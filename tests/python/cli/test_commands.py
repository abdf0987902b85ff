"""Every command gives what the package gives, as text, as JSON and in files."""

import json
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import optpess as op
import pytest
from optpess.cli.main import optpess
from optpess.study import learners
from optpess.study.worker import Receipt

from cli.harness import QUICK, STUDY, call

RING = op.zoo.problem("ring")
MIX = op.OptPessMix(
    shape=RING.model.shape,
    initial=RING.model.initial,
    baseline=RING.baseline,
    knowledge=op.Knowledge(stationary=True),
)


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


def values(*arguments):
    """The JSON of a command, which prints nothing else."""
    answer = call(*arguments, "--json")
    assert (answer.code, answer.err) == (0, "")
    return json.loads(answer.out, parse_constant=refuse)


def text(*arguments):
    answer = call(*arguments)
    assert (answer.code, answer.err) == (0, "")
    return answer.out


@pytest.fixture
def pages(monkeypatch):
    """What reports would be written: path, records and title of each. Drawing one takes a second."""
    found = []

    def write(path, *records, title=None):
        found.append((path.name, records, title))
        path.write_text("a page")

    for module in ("cli.commands.report", "cli.commands.runs", "study.result"):
        monkeypatch.setattr(f"optpess.{module}.write_report", write)
    return found


SIZES = {"name", "horizon", "num_states", "num_actions", "num_constraints"}
# What programs may rely on.
KEYS = {
    ("zoo", "ring"): SIZES | {"cost_limits", "safe_costs", "description", "output"},
    ("solve", "ring"): {
        *("model", "value", "bound", "gap", "costs", "limits", "slack", "multipliers", "binding"),
        *("engine", "inductions", "output"),
    },
    ("frontier", "ring"): {"model", "limit", "costs", "values", "slopes", "bound", "output"},
    ("simulate", "ring", *QUICK): {
        *("model", "learner", "episodes", "seed", "replicates", "optimal_value", "baseline_value"),
        *("baseline_costs", "cost_limits", "reward_regret", "gain", "weak_violation", "weight"),
        *("strong_violation", "multiplier", "violating_episodes", "first_violation", "plays"),
        *("worst_violation", "baseline_episodes", "estimation_episodes", "first_planned", "mixtures"),
        *(
            "guarantee",
            "void_because",
            "audits",
            "parameters",
            "versions",
            "output",
            "saved_learner",
            "report",
        ),
    },
    ("compare", "ring", "--learner", "optpess-mix", *QUICK): {
        *("model", "episodes", "seed", "replicates", "learners", "output", "report"),
    },
    ("forecast", "ring", "--learner", "optpess-lp", "--num-episodes", "1e6"): {
        *("model", "learner", "leaves_baseline", "tightening_horizon", "seconds", "guarantee"),
        *("would_leave_baseline", "beyond_num_episodes"),
    },
    ("certify", "safe.npy", "learner.npz"): {
        *("policy", "learner", "is_safe", "upper", "lower", "worst_case", "own_episodes_bound"),
        *("own_episodes", "limits", "episodes_observed", "guarantee"),
    },
    ("report", "run.npz"): {"records", "output"},
    ("sweep", "study.toml"): {
        *("study", "output", "num_cells", "executed", "failures", "missing", "table", "report"),
    },
}


@pytest.mark.parametrize("arguments", KEYS, ids=lambda arguments: arguments[0])
def test_the_keys_of_json_are_those_that_programs_rely_on(arguments, folder, pages):
    assert values(*arguments).keys() == KEYS[arguments]


def test_every_command_has_its_keys_tested():
    assert {arguments[0] for arguments in KEYS} == set(optpess.commands)


def test_the_list_of_problems_is_that_of_the_zoo():
    found = values("zoo")["problems"]
    assert [each["name"] for each in found] == list(op.zoo.names())
    sizes = {"horizon": 6, "num_states": 3, "num_actions": 2, "num_constraints": 1}
    assert found[1] == {"name": "ring", "cost_limits": [3.0], "safe_costs": [0.6]} | sizes
    assert len(text("zoo").splitlines()) == 1 + len(op.zoo.names())


def test_a_problem_is_written_as_a_model(folder):
    assert "written to ring.npz" in text("zoo", "ring", "--output", "ring.npz")
    assert op.CMDP.load("ring.npz").shape == RING.model.shape


@pytest.mark.parametrize("model", ["ring", "mine.npz", "./mine.npz", "link.npz"])
def test_a_model_is_found_by_name_by_file_and_through_a_link(model, folder):
    plan = op.solve(RING.model)
    found = values("solve", model)
    assert (found["value"], found["costs"]) == (plan.value, plan.costs.tolist())
    assert (found["multipliers"], found["binding"]) == (plan.multipliers.tolist(), [True])


def test_a_name_of_the_zoo_comes_before_a_file_of_that_name(folder):
    op.zoo.pair().save("ring")
    assert values("solve", "ring")["model"]["horizon"] == 6
    assert values("solve", "./ring")["model"]["horizon"] == 2


def test_a_plan_has_the_limits_that_are_asked_for_and_is_written(folder):
    plan = op.solve(RING.model, cost_limit=1.5)
    found = values("solve", "ring", "--cost-limit", "1.5", "--output", "cautious.npy")
    assert (found["value"], found["limits"]) == (plan.value, [1.5])
    assert (np.load("cautious.npy") == plan.policy).all()


def test_a_plan_with_two_limits_by_another_engine():
    found = values("solve", "inventory_stock_out", "--engine", "columns", "--time-limit", "30")
    assert found["engine"] == "columns"
    assert len(found["costs"]) == 2


def test_a_plan_to_a_tolerance_needs_fewer_inductions():
    exact = values("solve", "garnet", "--threads", "1")
    near = values("solve", "garnet", "--tolerance", "0.5")
    assert exact["value"] == op.solve(op.zoo.problem("garnet").model).value
    assert near["inductions"] < exact["inductions"]
    assert exact["value"] - 0.5 <= near["value"] <= exact["value"]


def test_a_part_of_a_frontier_to_a_tolerance():
    found = values("frontier", "media", "--tolerance", "0.01", "--between", "2", "6")
    expected = op.frontier(op.zoo.media(), tolerance=0.01, between=(2, 6))
    assert found["values"] == expected.values.tolist()
    assert 0 < found["bound"] <= 0.01


def test_a_model_of_a_umb_file(folder):
    pytest.importorskip("umbi", reason="the extra umb is not installed")
    op.zoo.ring().to_umb("ring.umb")
    assert values("solve", "ring.umb")["value"] == pytest.approx(2.0)


def test_a_frontier_is_printed_in_part_and_written_in_full(folder):
    curve = op.frontier(op.zoo.media())
    assert len(curve) > 20
    shown = text("frontier", "media", "--output", "media.csv").splitlines()
    assert shown[1].split() == ["0", f"{curve.values[0]:.6g}", f"{curve.slopes[0]:.6g}"]
    assert shown[20].split()[-1] == "-"
    assert shown[21:] == [
        f"and {len(curve) - 20} more vertices between them; --json and --output give all",
        "written to media.csv",
    ]
    written = np.loadtxt("media.csv", delimiter=",", skiprows=1)
    assert (written == np.asarray(curve)).all()
    assert values("frontier", "media")["values"] == curve.values.tolist()


def test_a_run_is_that_of_the_package(folder):
    expected = op.simulate(RING.model, MIX, episodes=200, seed=3, replicates=2, progress=False)
    arguments = ("simulate", "ring", *QUICK, "--seed", "3", "--replicates", "2")
    assert text(*arguments, "--output", "new.npz") == f"{expected}\nwritten to new.npz\n"
    assert op.load_run("new.npz").same_as(expected)
    found = values(*arguments, "--save-learner", "kept.npz")
    assert found["reward_regret"] == expected.reward_regret[:, -1].tolist()
    assert found["guarantee"] == {"kind": "SafeMixture", "probability": 0.95, "rests_on": ["stationary"]}
    assert op.load_learner("kept.npz").episodes_observed == 200


def test_the_curves_of_a_run_are_written_as_a_table(folder):
    text("simulate", "ring", *QUICK, "--output", "curves.csv")
    header = (folder / "curves.csv").read_text().splitlines()[0]
    assert header.startswith("replicate,episodes,reward_regret")


def test_what_is_not_a_number_is_null(folder):
    (row,) = values("compare", "ring", "--learner", "optpess-mix", *QUICK)["learners"]
    assert row["regret_error"] is None  # NaN, with a single replicate
    assert row["weak_exponent"] == [None, None, None]
    assert isinstance(row["regret"], float)


def test_a_comparison_is_that_of_the_package(folder):
    arguments = ("compare", "mine.npz", "--safe-cost", "0.6", *QUICK, "--output", "new.npz")
    shown = text(*arguments, "--learner", "optpess-mix", "--learner", "always-baseline")
    found = op.Comparison.load("new.npz")
    assert list(found.runs) == ["optpess-mix", "always-baseline"]
    assert shown == f"{found}\nwritten to new.npz\n"
    text("compare", "ring", "--learner", "sops", *QUICK[:2], "--output", "new.csv")
    assert (folder / "new.csv").read_text().startswith("learner,replicate,episodes")


def test_a_forecast_is_that_of_the_package():
    learner = op.OptPessLP(
        shape=RING.model.shape,
        initial=RING.model.initial,
        baseline=RING.baseline,
        num_episodes=1_000_000,
    )
    expected = op.forecast(RING.model, learner)
    found = values("forecast", "ring", "--learner", "optpess-lp", "--num-episodes", "1_000_000")
    assert found["leaves_baseline"] == expected.leaves_baseline
    shown = text("forecast", "ring", "--learner", "optpess-lp", "--num-episodes", "1000")
    leaves = found["leaves_baseline"]
    assert "not within its episodes" in shown
    assert leaves > 1000


def test_bounds_are_those_of_the_package(folder):
    bounds = op.certify(RING.safe_policy, op.load_learner("learner.npz"))
    found = values("certify", "safe.npy", "learner.npz")
    assert found["upper"] == bounds.upper.tolist()
    assert found["is_safe"] is bounds.is_safe
    assert text("certify", "safe.npy", "learner.npz").startswith("certified to be safe, by 200 episodes")
    always = np.ones(RING.model.shape)
    np.save("uniform.npy", always / 2)
    assert text("certify", "uniform.npy", "learner.npz").startswith("not certified")


def test_a_report_is_of_all_records_that_are_named(folder, pages):
    assert text("report", "run.npz", "two.npz", "--title", "Two records") == "written to report.html\n"
    ((name, (run, comparison), title),) = pages
    assert (name, title) == ("report.html", "Two records")
    assert run.same_as(op.load_run("run.npz"))
    assert comparison.runs["mix"].same_as(run)


def test_a_run_and_a_comparison_write_their_report(folder, pages):
    shown = text("simulate", "ring", *QUICK, "--output", "new.npz", "--report", "new.html")
    assert shown.endswith("\nwritten to new.npz\nwritten to new.html\n")
    text("compare", "ring", "--learner", "optpess-mix", *QUICK, "--report", "both.html")
    (_, (run,), _), (name, (comparison,), _) = pages
    assert run.same_as(op.load_run("new.npz"))
    assert (name, list(comparison.runs)) == ("both.html", ["optpess-mix"])


def test_a_report_is_that_of_the_package(folder):
    text("report", "run.npz")
    expected = op.write_report("expected.html", op.load_run("run.npz"))
    assert (folder / "report.html").read_text() == expected.read_text()


def test_a_study_is_that_of_the_package_and_writes_its_report(folder, pages):
    found = values("sweep", "study.toml", "--report", "study.html")
    result = op.load_study("study")
    assert (found["num_cells"], found["executed"], found["failures"]) == (4, 4, {})
    assert [row["regret"] for row in found["table"]] == [row["regret"] for row in result.table]
    ((name, records, _),) = pages
    assert (name, len(records)) == ("study.html", 1)


def test_runs_of_a_study_that_fail_are_listed_and_the_exit_code_says_so(folder, monkeypatch):
    Path("study.toml").write_text(STUDY.replace("= 2", "= 3"))

    def fail(cell):
        return Receipt(cell, "failed", "OSError: the disk is full")

    module = sys.modules["optpess.study.sweep"]  # the function of that name hides it
    monkeypatch.setattr(module, "execute", fail)
    pool = "optpess.run.pool._Workers"
    monkeypatch.setattr(pool, lambda *_, **__: ThreadPoolExecutor(1))
    answer = call("sweep", "study.toml", "--quiet")
    assert answer.code == 1
    assert "ring, mix (delta=0.01), replicate 2: OSError: the disk is full" in answer.out
    assert "4 of 6 runs are there" in answer.out


# Safe policies and learners


@pytest.mark.parametrize("policy", ["safe.npy", "actions.npy"])
def test_a_safe_policy_in_a_file_costs_what_it_does_on_the_model(policy, folder):
    found = values("simulate", "mine.npz", "--baseline", policy, *QUICK)
    assert found["parameters"]["safe_cost"] == found["baseline_costs"][0]
    assert found["baseline_costs"][0] == pytest.approx(0.6 if policy == "safe.npy" else 0.0)


def test_a_claimed_cost_is_told_to_the_learner_and_a_false_one_voids_the_guarantee(folder):
    told = values("simulate", "mine.npz", "--baseline", "safe.npy", "--safe-cost", "1.2", *QUICK)
    assert told["parameters"]["safe_cost"] == 1.2
    answer = call(
        "simulate", "mine.npz", "--baseline", "safe.npy", "--safe-cost", "0.1", *QUICK, "--json"
    )
    assert answer.code == 0
    assert len(answer.lines) == 1
    assert answer.err.startswith("optpess: warning: the baseline costs 0.6 in this model")
    assert json.loads(answer.out)["guarantee"] is None


def test_options_of_learners_reach_them(folder):
    options = ("--delta", "0.1", "--replan-growth", "0.5", "--estimate-safe-cost", *QUICK)
    told = values("simulate", "ring", *options)["parameters"]
    assert (told["failure_probability"], told["replan_growth"], told["safe_cost"]) == (0.1, 0.5, None)
    assert told["knowledge"] == "Knowledge(stationary=True)"
    each_time = values("simulate", "ring", "--learner", "sops", *QUICK[:2], "--replan-growth", "0")
    assert each_time["parameters"]["replan_growth"] == 0.0
    assert each_time["parameters"]["num_episodes"] == 200
    some = ("--learner", "optpess-lp", "--episodes", "10", "--num-episodes", "50", "--quiet")
    scaled = values("simulate", "ring", *some, "--confidence", "scaled:1e-5")["parameters"]
    assert (scaled["confidence"], scaled["num_episodes"]) == ("Scaled(factor=1e-05)", 50)


@pytest.mark.parametrize("name", learners.LEARNERS)
def test_every_learner_runs_by_its_name(name):
    kind = learners.LEARNERS[name]
    arguments = ("ring", "--episodes", "20", "--quiet")
    answer = call("simulate", *arguments, "--learner", name, "--json")
    assert answer.code == 0
    class_name = call("simulate", *arguments, "--learner", kind.__name__, "--json")
    assert json.loads(class_name.out)["reward_regret"] == json.loads(answer.out)["reward_regret"]


def test_every_learner_of_the_package_has_a_name():
    classes = (
        op.Learner.__subclasses__(),
        *(each.__subclasses__() for each in op.Learner.__subclasses__()),
    )
    public = {each for group in classes for each in group if each.__name__ in op.__all__}
    nested = {each for kind in public for each in kind.__subclasses__()}
    assert (public | nested) - {op.StagedRollout} <= set(learners.LEARNERS.values())


def test_a_learner_may_carry_its_confidence_rule():
    some = ("ring", "--episodes", "20", "--quiet", "--learner")
    row, other = values("compare", *some, "optpess-lp:sharp", "--learner", "optpess-lp:scaled:1e-5")[
        "learners"
    ]
    assert (row["confidence"], other["confidence"]) == ("Sharp()", "Scaled(factor=1e-05)")


def test_a_model_in_units_of_its_own_and_with_missing_actions_is_learned(folder):
    half = np.full((2, 2, 2), 0.5)
    model = op.CMDP.stationary(
        half,
        [[0.0, 50.0], [10.0, 20.0]],
        [[0.0, 4.0], [0.0, 0.0]],
        6.0,
        [1.0, 0.0],
        horizon=3,
        reward_range=(0, 50),
        cost_range=(0, 4),
        actions=[[True, True], [True, False]],
    )
    model.save("units.npz")
    found = values("simulate", "units.npz", "--safe-cost", "1", "--learner", "optpess-mix", *QUICK)
    assert found["cost_limits"] == [6.0]
    assert found["violating_episodes"] == [0]
    assert found["baseline_costs"] == pytest.approx([1.0])


# Help


@pytest.mark.parametrize("name", optpess.commands)
def test_the_examples_of_help_run(name, folder, pages):
    answer = call(name, "--help")
    assert (answer.code, answer.err) == (0, "")
    examples = answer.out.partition("Examples:\n")[2].splitlines()
    assert any(line.split()[1] == name for line in examples)
    for line in examples:
        program, *arguments = shlex.split(line)
        assert program == "optpess"
        assert call(*arguments).code == 0, line


def test_no_arguments_show_the_commands_and_the_exit_codes():
    answer = call()
    assert answer.code == 0
    assert all(f"\n  {name} " in answer.out for name in optpess.commands)
    assert "130 interrupted" in answer.out
    assert call("-h").out == answer.out == call("--help").out


def test_the_version_is_that_of_the_package():
    assert call("--version").out == f"optpess {op.__version__}\n"
