"""Studies in TOML files: what they say, and what is refused."""

import numpy as np
import optpess as op
import pytest

TEXT = """
episodes = 40
replicates = 3
seed = 5
problems = ["ring", {name = "mine", model = "model.npz", safe_cost = 0.6}]

[learners.mix]
learner = "optpess-mix"
stationary = true
delta = [0.01, 0.1]
replan_growth = [0.5, 0.25]

[learners.always-baseline]
"""


@pytest.fixture
def read(tmp_path):
    """Reads a study from a text."""
    op.zoo.ring().save(tmp_path / "model.npz")

    def study(text):
        path = tmp_path / "study.toml"
        path.write_text(text)
        return op.Study.from_toml(path)

    return study


def test_a_learner_has_every_value_of_its_own_lists(read):
    study = read(TEXT)
    assert (study.replicates, study.episodes, study.seed) == (3, 40, 5)
    made = [(each.problem, each.learner, each.parameters) for each in study.configurations]
    choices = [{"delta": d, "replan_growth": g} for d in (0.01, 0.1) for g in (0.5, 0.25)]
    assert made == [
        (problem, learner, chosen)
        for problem in ("ring", "mine")
        for learner, several in (("mix", choices), ("always-baseline", [{}]))
        for chosen in several
    ]


def test_the_learners_are_those_that_their_options_make(read):
    _, learner = read(TEXT).configurations[1].origin.restore()
    ring = op.zoo.problem("ring")
    expected = op.OptPessMix(
        shape=ring.model.shape,
        initial=ring.model.initial,
        baseline=ring.baseline,
        failure_probability=0.01,
        replan_growth=0.25,
        knowledge=op.Knowledge(stationary=True),
    )
    assert learner.parameters == expected.parameters


def test_a_model_in_a_file_has_the_best_policy_of_its_safe_cost(read):
    model, learner = read(TEXT).configurations[5].origin.restore()
    assert np.array_equal(model.rewards, op.zoo.ring().rewards)
    assert learner.parameters["safe_costs"] == pytest.approx([0.6])


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        ("seed", "sede", "the key is 'sede'.*did you mean 'seed'"),
        ("= 40", "= 4.5", "episodes is 4.5, of type float; it must be a whole number"),
        ("= 5", "= -1", "seed is -1"),
        ('"ring"', '"rng"', "did you mean 'ring'"),
        ('"ring"', "7", r"problems\[0\] is 7, of type int; it must be a text or a table"),
        ('"ring"', '"ring", "ring"', r"problems\[1\] is a second 'ring'"),
        ("model =", "mdl =", r"the key of problems\[1\] is 'mdl'"),
        ("0.6", '"low"', r"problems\[1\].safe_cost is 'low'"),
        ("optpess-mix", "optpess-mx", "learners.mix.learner is 'optpess-mx'.*did you mean"),
        ("stationary = true", "stationary = 1", "learners.mix.stationary is 1, of type int"),
        ("0.01,", '"a",', r"learners.mix.delta\[0\] is 'a', of type str; it must be a number"),
        ("[0.01, 0.1]", "[]", "learners.mix.delta is empty"),
        ("always-baseline", "always_baselines", "did you mean 'always-baseline'"),
        (", safe_cost = 0.6", "", "optpess-mix needs a safe policy.*give its problem's safe_cost"),
        ("[learners.mix]", "[other]", "the key is 'other'"),
        ("seed = 5", "seed = 5\nseed = 6", "it is not TOML"),
        ("seed = 5", "seed = " + 2000 * "[", "it is not TOML"),
        ("seed = 5", "#" * 1_000_001, "it has more than 1000000 bytes"),
    ],
)
def test_what_does_not_belong_there_is_refused_in_one_line(read, old, new, refusal):
    with pytest.raises(op.InvalidInputError, match=f"study.toml: .*{refusal}"):
        read(TEXT.replace(old, new, 1))


def test_a_study_needs_learners(read):
    with pytest.raises(op.InvalidInputError, match="there are no learners; name at least one"):
        read(TEXT.partition("[learners")[0])


def test_a_learner_may_have_parameters_of_its_own():
    def mix(problem, delta):
        model = problem.model
        given = {"shape": model.shape, "initial": model.initial, "baseline": problem.baseline}
        return op.OptPessMix(**given, failure_probability=delta)

    pair = {"pair": op.zoo.problem("pair")}
    learners = {"one": (mix, {"delta": [0.1]}), "two": mix}
    study = op.Study(pair, learners, {"delta": [0.2, 0.3]}, episodes=5)
    found = [(each.learner, each.parameters["delta"]) for each in study.configurations]
    assert found == [("one", 0.1), ("two", 0.2), ("two", 0.3)]
    with pytest.raises(op.InvalidInputError, match=r"learners\['one'\]\[1\] is 7"):
        op.Study(pair, {"one": (mix, 7)}, episodes=5)
