"""Typical mistakes with runs, comparisons, records and plans: each is refused in one sentence.

To add one, add a row to the table of its group.
"""

import sys

import numpy as np
import optpess as op
import pytest
from support.healthy import refused_in_one_sentence

pytestmark = pytest.mark.filterwarnings("ignore:this run is expected")

PAIR, RING = op.zoo.problem("pair"), op.zoo.problem("ring")
MODEL, LIMIT = PAIR.model, 0.6
TOLD = {"shape": MODEL.shape, "initial": MODEL.initial}

WHOLE = "it must be a whole number"
TRUTH = "it must be True or False"
PATH = "it must be a text or a pathlib.Path"
ALIKE = "only runs that differ in nothing but their replicates can be joined"


def lp(**changes):
    return op.OptPessLP(**TOLD | {"baseline": PAIR.baseline, "num_episodes": 20} | changes)


def mix(**changes):
    return op.OptPessMix(**TOLD | {"baseline": PAIR.baseline} | changes)


def primal_dual(**changes):
    arguments = TOLD | {"margin": PAIR.baseline.margin, "num_episodes": 20}
    return op.OPDOP(**arguments | changes)


def other_model(**changes):
    """The pair with one thing changed."""
    parts = {
        "transitions": MODEL.transitions,
        "rewards": MODEL.stored_rewards(),
        "costs": MODEL.stored_costs(),
        "cost_limit": LIMIT,
        "initial": MODEL.initial,
        "horizon": 2,
    }
    return op.CMDP.stationary(**parts | changes)


def run_of(learner=None, **options):
    return op.simulate(MODEL, learner or lp(), **{"progress": False} | options)


def finished():
    return run_of().learners[0]


def pending():
    learner = lp()
    learner.next_policy()
    return learner


RUN = run_of()
COMPARISON = op.compare(MODEL, {"one": lp()}, progress=False)
MASK = np.array([[True, True], [True, False]])

# What is wrong: (the call, pieces of the message).
TYPES = {
    "model and learner swapped": (
        lambda: op.simulate(lp(), MODEL),
        ["model is an OptPessLP; it must be of type CMDP", "the order is simulate(model, learner)"],
    ),
    "a problem as the model": (
        lambda: op.simulate(PAIR, lp()),
        ["model is a Problem", "its attribute model is one"],
    ),
    "a class as the learner": (
        lambda: op.simulate(MODEL, op.OptPessLP),
        ["learner is <class", "of type Learner", "make one"],
    ),
    "learners by name where one is taken": (
        lambda: op.simulate(MODEL, {"one": lp()}),
        ["learner is a dict", "of type Learner"],
    ),
    "forecast swapped": (
        lambda: op.forecast(lp(), MODEL),
        ["model is an OptPessLP", "the order is forecast(model, learner)"],
    ),
    "a run for a learner": (lambda: op.forecast(MODEL, RUN), ["learner is a Run", "of type Learner"]),
    "compare swapped": (
        lambda: op.compare({"one": lp()}, MODEL),
        ["learners is a CMDP", "a dictionary of learners", "the order is compare(model, learners)"],
    ),
    "one learner to compare": (
        lambda: op.compare(MODEL, lp()),
        ["learners is an OptPessLP", "a dictionary of learners by their names"],
    ),
    "a list to compare": (
        lambda: op.compare(MODEL, [lp(), mix()]),
        ["learners is a list", 'such as {"ours": learner}'],
    ),
    "a name to compare": (
        lambda: op.compare(MODEL, "OPDOP"),
        ["learners is 'OPDOP'", "a dictionary of learners"],
    ),
    "nothing to compare": (lambda: op.compare(MODEL, {}), ["learners is empty"]),
    "numbers as names": (
        lambda: op.compare(MODEL, {1: lp()}),
        ["a name in learners is 1, of type int", "of type str"],
    ),
    "a class to compare": (
        lambda: op.compare(MODEL, {"one": op.OptPessLP}),
        ["learners['one'] is <class", "of type Learner"],
    ),
}
NUMBERS = {
    "episodes as a float": (
        lambda: run_of(mix(), episodes=1e3),
        ["episodes is 1000.0, of type f", WHOLE],
    ),
    "episodes as a text": (
        lambda: run_of(mix(), episodes="10"),
        ["episodes is '10', of type str", WHOLE],
    ),
    "episodes as a truth value": (lambda: run_of(mix(), episodes=True), ["episodes is True", WHOLE]),
    "no episode": (lambda: run_of(mix(), episodes=0), ["episodes is 0", "[1, "]),
    "a negative number of episodes": (lambda: run_of(episodes=-1), ["episodes is -1", "at least 1"]),
    "no end": (
        lambda: run_of(mix()),
        ["episodes is None, but OptPessMix has no num_episodes", "say how many"],
    ),
    "more episodes than there are": (
        lambda: run_of(episodes=21),
        ["episodes is 21; learner has 20 of its 20 episodes left"],
    ),
    "a learner that has finished": (
        lambda: run_of(finished()),
        ["learner has observed all of its 20 episodes", "none is left"],
    ),
    "one more after the last": (lambda: run_of(finished(), episodes=1), ["observed all of its 20"]),
    "more episodes than can be counted": (
        lambda: run_of(mix(), episodes=2**70),
        ["episodes is 1180591620717411303424", "[1, 9007199254740991]"],
    ),
    "a learner of several has too few": (
        lambda: op.compare(MODEL, {"long": mix(), "short": lp()}, episodes=100),
        ["episodes is 100; learners['short'] has 20 of its 20 episodes left"],
    ),
    "replicates as a float": (
        lambda: run_of(replicates=2.0),
        ["replicates is 2.0, of type float", WHOLE, "or the numbers of the replicates"],
    ),
    "replicates as a text": (lambda: run_of(replicates="2"), ["replicates is '2'", WHOLE]),
    "no replicates": (lambda: run_of(replicates=0), ["replicates is 0", "at least 1"]),
    "replicates None": (lambda: run_of(replicates=None), ["replicates is None", WHOLE]),
    "the same replicate twice": (
        lambda: run_of(replicates=[0, 0]),
        ["replicates[0] and replicates[1] are both 0", "the same number is the same run"],
    ),
    "an empty list of replicates": (lambda: run_of(replicates=[]), ["replicates is empty"]),
    "a negative replicate": (lambda: run_of(replicates=[-1]), ["replicates[0] is -1", "at least 0"]),
    "a fraction of a replicate": (lambda: run_of(replicates=[0.5]), ["replicates[0] is 0.5", WHOLE]),
    "a table of replicates": (
        lambda: run_of(replicates=np.zeros((2, 2), int)),
        ["replicates[0] is array([0, 0])", WHOLE],
    ),
    "too many replicates": (lambda: run_of(replicates=10**7), ["replicates is 10000000", "1000000]"]),
    "a seed as a float": (lambda: run_of(seed=1.5), ["seed is 1.5, of type float", WHOLE]),
    "a seed as a text": (lambda: run_of(seed="1"), ["seed is '1', of type str", WHOLE]),
    "no seed": (lambda: run_of(seed=None), ["seed is None", WHOLE]),
    "a generator as the seed": (
        lambda: run_of(seed=np.random.default_rng(1)),
        ["seed is a Generator", WHOLE],
    ),
    "a negative seed": (lambda: run_of(seed=-1), ["seed is -1", "[0, 2^64)"]),
    "a seed of a comparison": (
        lambda: op.compare(MODEL, {"one": lp()}, seed="1"),
        ["seed is '1', of type str", WHOLE],
    ),
    "no threads": (lambda: run_of(threads=0), ["threads is 0", "must lie in [1, 1024]"]),
    "threads as a word": (lambda: run_of(threads="all"), ["threads is 'all', of type str", WHOLE]),
    "progress as a word": (lambda: run_of(progress="no"), ["progress is 'no', of type str", TRUTH]),
    "progress of a comparison": (
        lambda: op.compare(MODEL, {"one": lp()}, progress="no"),
        ["progress is 'no'", TRUTH],
    ),
    "a trace as a word": (lambda: run_of(trace="no"), ["trace is 'no', of type str", TRUTH]),
    "an audit as a number": (lambda: run_of(audit=1), ["audit is 1, of type int", TRUTH]),
    "learners to keep as a word": (lambda: run_of(learners="all"), ["learners is 'all'", TRUTH]),
    "a trace that would fill the memory": (
        lambda: run_of(mix(), episodes=10**8, trace=True),
        ["a trace of 100000000 episodes x 1 replicates is too long", "an episode of 2 steps takes"],
    ),
}
# A learner for another problem: the model, the learner, pieces of the message.
PROBLEMS = {
    "sizes": (
        RING.model,
        lp(),
        ["model has shape (6, 3, 2) and {} (2, 2, 2)", "shape=model.shape"],
    ),
    "limit": (
        other_model(cost_limit=1.0),
        lp(),
        ["model has cost_limit 1.0 and {} 0.6", "give both the same limit"],
    ),
    "limit in units": (
        other_model(costs=10 * MODEL.stored_costs(), cost_limit=7.0, cost_range=(0, 10)),
        lp(baseline=op.SafeBaseline(PAIR.safe_policy, op.SafetyMargin(6.0, 1.35)), cost_range=(0, 10)),
        ["model has cost_limit 7.0 and {} 6.0", "give both the same limit"],
    ),
    "number of limits": (
        other_model(costs=np.repeat(MODEL.stored_costs(), 2, axis=0), cost_limit=[0.6, 0.6]),
        lp(),
        ["model has 2 limits and {} 1", "OptPessMix takes several"],
    ),
    "first state": (
        other_model(initial=[1.0, 0.0]),
        lp(),
        ["the model's initial distribution", "is 1", "0.5", "make {} with initial=model.initial"],
    ),
    "first state without a baseline": (
        other_model(initial=0),
        primal_dual(),
        ["the model's initial distribution", "make {} with initial=model.initial"],
    ),
    "units": (
        other_model(reward_range=(0, 2)),
        lp(),
        ["reward_range=(0.0, 2.0)", "and {} Units(reward_range=(0.0, 1.0)", "give both the same"],
    ),
    "actions": (
        other_model(actions=MASK),
        lp(),
        ["model and {} differ in the actions that exist", "actions=model.actions"],
    ),
    "turn": (MODEL, pending(), ["{} has planned episode 0", "call observe, or abandon, first"]),
}
OTHERS = {
    "an outside engine": (
        lambda: run_of(lp(engine="highs")),
        ["learner has engine='highs'", "engine='parametric'", "episode by episode"],
    ),
    "an outside engine among others": (
        lambda: op.compare(MODEL, {"one": lp(), "two": lp(engine="highs")}),
        ["learners['two'] has engine='highs'"],
    ),
    "noise that leaves the range": (
        lambda: op.simulate(other_model(noise=op.Gaussian(0.4)), mix(), episodes=50, progress=False),
        ["the model's noise is Gaussian(sigma=0.4)", "op.Bernoulli()", "variance_proxy"],
    ),
    "noise that a sharp rule does not allow": (
        lambda: op.simulate(
            other_model(noise=op.Gaussian(0.4)), lp(confidence=op.Sharp()), progress=False
        ),
        ["the model's noise is Gaussian(sigma=0.4)", "OptPessLP needs observations within"],
    ),
}
RECORDS = {
    "an unknown curve": (
        lambda: RUN.growth_exponent(of="reward_regrets"),
        ["of is 'reward_regrets'", "did you mean 'reward_regret'?"],
    ),
    "a curve that is no sum": (
        lambda: RUN.growth_exponent(of="deployed_cost"),
        ["of is 'deployed_cost'", "'gain'"],
    ),
    "a curve by its number": (lambda: RUN.growth_exponent(of=3), ["of is 3; allowed are"]),
    "the curve first": (
        lambda: RUN.growth_exponent("gain"),
        ["decades is 'gain', of type str", "it must be a number"],
    ),
    "no decades": (lambda: RUN.growth_exponent(0), ["decades is 0", "above 0"]),
    "negative decades": (lambda: RUN.growth_exponent(-1.0), ["decades is -1.0", "above 0"]),
    "decades that are no number": (lambda: RUN.growth_exponent(np.nan), ["decades is nan", "above 0"]),
    "a curve that the run lacks": (
        lambda: run_of(primal_dual()).growth_exponent(of="gain"),
        ["of is 'gain', which this run does not have"],
    ),
    "one run to join": (lambda: op.Run.concat(RUN), ["runs is a single Run", "a sequence of runs"]),
    "a number to join": (lambda: op.Run.concat(3), ["runs is 3, of type int", "a sequence of runs"]),
    "nothing to join": (lambda: op.Run.concat([]), ["runs is empty"]),
    "files to join": (
        lambda: op.Run.concat(["a.npz", "b.npz"]),
        ["runs[0] is 'a.npz', of type str", "of type Run"],
    ),
    "the same run twice": (
        lambda: op.Run.concat([RUN, RUN]),
        ["replicate 0 is in several runs", "replicates=range(10, 20)"],
    ),
    "runs of two seeds": (
        lambda: op.Run.concat([RUN, run_of(seed=2, replicates=[1])]),
        ["runs[1] has seed = 2; runs[0] has 0", ALIKE],
    ),
    "runs of two learners": (
        lambda: op.Run.concat([RUN, run_of(mix(), episodes=20, replicates=[1])]),
        ["runs[1] has algorithm = 'OptPess-Mix'; runs[0] has 'OptPess-LP'", ALIKE],
    ),
    "runs of two lengths": (
        lambda: op.Run.concat([RUN, run_of(episodes=10, replicates=[1])]),
        ["runs[1] has episodes = 10; runs[0] has 20", ALIKE],
    ),
    "runs of two models": (
        lambda: op.Run.concat(
            [RUN, op.simulate(other_model(rewards=[[0.0, 0.5], [0.5, 1.0]]), lp(), replicates=[1])]
        ),
        ["runs[1] has another", ALIKE],
    ),
    "a number to compare with": (lambda: RUN.same_as(5), ["other is 5, of type int", "of type Run"]),
    "learners of a run that has none": (
        lambda: run_of(learners=False).learners,
        ["this run has kept no learners", "learners=True"],
    ),
    "a number as a path to read": (lambda: op.load_run(5), ["path is 5, of type int", PATH]),
    "a run as a path": (lambda: op.load_run(RUN), ["path is a Run", PATH]),
    "a run to reproduce": (lambda: op.reproduce(RUN), ["path is a Run", PATH]),
    "no path": (lambda: op.Comparison.load(None), ["path is None", PATH]),
    "a number as a path to write": (lambda: RUN.save(5), ["path is 5, of type int", PATH]),
    "a comparison to a number": (lambda: COMPARISON.save(5), ["path is 5, of type int", PATH]),
    "a table to a number": (lambda: RUN.to_csv(5), ["path is 5, of type int", PATH]),
    "a table to nothing": (lambda: COMPARISON.to_csv(None), ["path is None", PATH]),
}
PLANS = {
    "engine and model swapped": (
        lambda: op.solve("highs", MODEL),
        ["model is 'highs', of type str", "of type CMDP"],
    ),
    "a learner to plan for": (lambda: op.solve(lp()), ["model is an OptPessLP", "of type CMDP"]),
    "a problem to plan for": (lambda: op.solve(PAIR), ["model is a Problem", "its attribute model"]),
    "a limit as the engine": (
        lambda: op.solve(MODEL, 0.5),
        ["engine is 0.5; allowed are 'parametric'", "give cost_limit=0.5"],
    ),
    "a limit as a text": (lambda: op.solve(MODEL, cost_limit="0.5"), ["cost_limit is '0.5'", "number"]),
    "a frontier of a policy": (
        lambda: op.frontier(PAIR.safe_policy),
        ["model is an ndarray", "of type CMDP"],
    ),
    "a frontier of several limits": (
        lambda: op.frontier(op.zoo.inventory_stock_out()),
        ["2 constraints", "exactly one"],
    ),
    "a limit of a frontier as a text": (
        lambda: op.frontier(MODEL).value_at("0.5"),
        ["limit is '0.5', of type str", "a number"],
    ),
    "rewards before the policy": (
        lambda: op.evaluate(MODEL.rewards, PAIR.safe_policy, MODEL.transitions, MODEL.initial),
        ["policy[0, 0] sums to", "1"],
    ),
    "transitions before the rewards": (
        lambda: op.evaluate(PAIR.safe_policy, MODEL.transitions, MODEL.rewards, MODEL.initial),
        ["signal holds elements of type object (Transitions)"],
    ),
    "a plan as the policy": (
        lambda: op.evaluate(op.solve(MODEL), MODEL.rewards, MODEL.transitions, MODEL.initial),
        ["policy holds elements of type object (Plan)"],
    ),
    "all costs as the signal": (
        lambda: op.evaluate(PAIR.safe_policy, MODEL.costs, MODEL.transitions, MODEL.initial),
        ["signal has shape [1, 2, 2, 2]", "[H, S, A]"],
    ),
    "a policy to sample from": (
        lambda: op.sample(PAIR.safe_policy, MODEL, 10),
        ["model is an ndarray", "of type CMDP"],
    ),
}
TABLE = {
    f"{group}: {name}": row
    for group, rows in (
        ("type", TYPES),
        ("number", NUMBERS),
        ("other", OTHERS),
        ("record", RECORDS),
        ("plan", PLANS),
    )
    for name, row in rows.items()
}


@pytest.mark.parametrize("mistake", TABLE)
def test_a_mistake_is_refused_in_one_sentence(mistake):
    call, pieces = TABLE[mistake]
    refused_in_one_sentence(call, pieces)


@pytest.mark.parametrize("mistake", PROBLEMS)
def test_a_learner_for_another_problem_is_refused_with_what_to_change(mistake):
    model, learner, pieces = PROBLEMS[mistake]
    before = learner._inner.to_bytes()
    calls = {
        "learner": [
            lambda: op.simulate(model, learner, progress=False),
            lambda: op.forecast(model, learner),
        ],
        "learners['it']": [lambda: op.compare(model, {"it": learner}, progress=False)],
    }
    for name, each in calls.items():
        for call in each:
            refused_in_one_sentence(call, [piece.format(name) for piece in pieces])
    assert learner._inner.to_bytes() == before


def test_a_comparison_checks_all_learners_before_it_runs_one(monkeypatch):
    wrong = (lp(engine="highs"), finished(), primal_dual(initial=[1.0, 0.0]), 5)
    monkeypatch.setattr("optpess._core.simulate_learner", lambda *_: pytest.fail("it ran"))
    for last in wrong:
        with pytest.raises(op.InvalidInputError, match=r"learners\['last'\]"):
            op.compare(MODEL, {"first": lp(), "last": last}, progress=False)


# Files


@pytest.fixture
def files(tmp_path):
    """A file of each kind."""
    made = {"Run": RUN, "CMDP": MODEL, "Comparison": COMPARISON, "Learner": lp()}
    for name, thing in made.items():
        thing.save(tmp_path / f"{name}.npz")
    (tmp_path / "text.npz").write_text("no arrays")
    return tmp_path


@pytest.mark.parametrize("kind", ["Run", "CMDP", "Comparison", "Learner"])
def test_a_file_of_another_kind_is_refused_with_what_reads_it(files, kind):
    right = {"Run": "load_run", "CMDP": "CMDP.load", "Learner": "load_learner"}
    reader = right.get(kind, "Comparison.load")
    for call, own in ((op.load_run, "Run"), (op.Comparison.load, "Comparison"), (op.reproduce, "Run")):
        if own != kind:
            path = files / f"{kind}.npz"
            refused_in_one_sentence(
                lambda call=call, path=path: call(path), [f"optpess.{kind}/", f"{reader} reads"]
            )


@pytest.mark.parametrize("call", [op.load_run, op.Comparison.load, op.reproduce])
def test_a_file_that_cannot_be_read_is_named(files, call):
    refused_in_one_sentence(lambda: call(files / "text.npz"), ["text.npz is not a readable .npz file"])
    with pytest.raises(FileNotFoundError, match=r"nothing\.npz"):
        call(files / "nothing.npz")
    with pytest.raises(IsADirectoryError):
        call(files)


WRITERS = {
    "a run": RUN.save,
    "a comparison": COMPARISON.save,
    "a learner": lp().save,
    "a model": MODEL.save,
    "a table": RUN.to_csv,
    "tables": COMPARISON.to_csv,
}


@pytest.mark.parametrize("what", WRITERS)
def test_a_folder_that_does_not_exist_is_named_and_nothing_is_written(what, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing for "):
        WRITERS[what](tmp_path / "missing" / "file")
    with pytest.raises(IsADirectoryError, match="is a folder, not a file"):
        WRITERS[what](tmp_path)
    assert list(tmp_path.iterdir()) == []


# Libraries that are not there


@pytest.mark.parametrize("shown", [RUN, COMPARISON], ids=["run", "comparison"])
@pytest.mark.parametrize(
    ("method", "library", "extra"), [("plot", "matplotlib", "plot"), ("to_frame", "pandas", "frame")]
)
def test_a_missing_library_is_named_with_a_command_that_works(
    monkeypatch, shown, method, library, extra
):
    for name in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)  # importing it now fails
    with pytest.raises(ImportError) as caught:
        getattr(shown, method)()
    message = str(caught.value)
    assert f"needs {library}: pip install {library}" in message
    assert f"in a checkout of optpess, pip install '.[{extra}]'" in message
    assert "pip install optpess[" not in message
