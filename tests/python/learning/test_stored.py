"""Stored learners: a restored one continues bit for bit, bytes are few, damaged bytes are refused."""

import copy
import pickle
import zlib

import numpy as np
import optpess as op
import pytest

from learning import cases

EPISODES = 600
FLIPS = 2000
MARKET = cases.market()
LEARNERS = cases.every_learner(MARKET, EPISODES, op.Scaled(0.02))
ESTIMATED = "OptPess-LP, estimated"
HIGHS = "OptPess-LP, HiGHS"
# What a pickled learner of horizon 10 with 20 states and 4 actions may take after 10 episodes. C-UCRL is
# given transitions, 115 kB; OptPess-Mix keeps two dozen policies of 6 kB and the bets of each row it has
# visited; the others named keep the bounds of a set of kernels, 256 kB.
MOST_BYTES = 64_000
MOST_BYTES_OF = {"CUCRL": 180_000, "OptCMDP": 350_000, "OptDualCMDP": 320_000}
MOST_BYTES_OF |= dict.fromkeys(("SOPS", "SOPS, growth"), 380_000)
MOST_BYTES_OF |= dict.fromkeys(("OptPessMix", "OptPessMix, estimated"), 300_000)


def restored(learner):
    return pickle.loads(pickle.dumps(learner))


def bits(deployment):
    """Every bit of a deployment."""
    certificate = deployment.certificate
    figures = [deployment.optimistic_reward, deployment.biased_cost]
    if certificate is not None:
        figures += [certificate.cost, certificate.limit, certificate.repair]
    if (mixture := deployment.mixture) is not None:
        figures += [mixture.number, mixture.chosen, *mixture.weights, *mixture.cost_bounds]
        figures += [bound for member in mixture.members for bound in member.cost_bounds]
    return (
        deployment.episode,
        deployment.source,
        deployment.policy.tobytes(),
        deployment._uniforms.tobytes(),
        np.array(figures).tobytes(),
    )


def knowledge(learner):
    """Every bit of what a learner shows of itself."""
    known, signals = learner.estimates, learner.signals
    tables = [getattr(known, name) for name in known.__slots__]
    tables += [signals.cost] + ([] if signals.reward is None else [signals.reward])
    inner = learner._inner
    return (
        [table.tobytes() for table in tables],
        inner.multiplier,
        inner.inductions,
        inner.episodes_observed,
        inner.safe_cost,
        inner.guarantee,
        inner.log_factor,
        inner.promise,
    )


def check_same_future(first, second, model, numbers, *, look=True):
    """Both learners deploy and learn the same from now on, to the bit. Looking at what a learner knows
    brings its estimates up to date, so it is also done without.
    """
    sources = set()
    for number in numbers:
        assert not look or knowledge(first) == knowledge(second)
        deployments = [learner.next_policy() for learner in (first, second)]
        assert bits(deployments[0]) == bits(deployments[1])
        sources.add(deployments[0].source)
        for learner, deployment in zip((first, second), deployments, strict=True):
            learner.observe(*cases.played(deployment, model, number))
    assert cases.stored(first) == cases.stored(second)
    assert knowledge(first) == knowledge(second)
    return sources


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("middle", [0, 7, 450])
@pytest.mark.parametrize("between", ["episodes", "plan and observation"])
@pytest.mark.parametrize("look", [False, True])
def test_a_restored_learner_continues_bit_for_bit(name, middle, between, look):
    learner = cases.driven(LEARNERS[name](), MARKET, middle)
    if between == "plan and observation":
        learner.next_policy()
    other = restored(learner)
    assert type(other) is type(learner)
    assert other.parameters == learner.parameters
    if name == HIGHS:
        learner = copy.copy(learner)  # which starts its linear programs anew, as a restored one does
    if between == "plan and observation":
        assert not look or knowledge(learner) == knowledge(other)
        assert bits(learner.pending) == bits(other.pending)
        for each in (learner, other):
            each.observe(*cases.played(each.pending, MARKET, middle))
        middle += 1
    check_same_future(learner, other, MARKET, range(middle, middle + 60), look=look)


def test_a_learner_stored_while_its_safe_cost_is_estimated_continues_bit_for_bit():
    learner = cases.driven(LEARNERS[ESTIMATED](), MARKET, 12)
    assert learner.safe_cost is None
    other = restored(learner)
    sources = check_same_future(learner, other, MARKET, range(12, EPISODES))
    assert sources == {"BaselineEstimation", "Baseline", "PessimisticSet"}
    assert learner.safe_cost == other.safe_cost is not None


def test_a_learner_stored_between_assessment_and_deployment_takes_the_same_plan():
    learner = cases.driven(LEARNERS[HIGHS](), MARKET, 450)
    assert learner._inner.assess() is None, "the gate should be open"
    original, other = copy.copy(learner), restored(learner)
    with pytest.raises(op.ProtocolError, match="the plan of an outside engine"):
        other.observe([0] * 3, [0] * 3, [0.0] * 3, [0.0] * 3)
    candidates = [each._highs.plan(each._inner) for each in (original, other)]
    assert candidates[0].tobytes() == candidates[1].tobytes()
    for each in (original, other):
        each._inner.deploy(candidates[0])
    first, second = original.pending, other.pending
    assert bits(first) == bits(second)
    assert first.source == "PessimisticSet"
    for each in (original, other):
        each.observe(*cases.played(first, MARKET, 450))
    check_same_future(original, other, MARKET, range(451, 500))


def random_market(shape, cost_limit):
    """A problem in which the first action is the cheapest; half of the episodes start in state 0."""
    generator = np.random.default_rng(8)
    num_states = shape[1]
    transitions = generator.dirichlet(np.ones(num_states), size=shape)
    costs = generator.uniform(0.4, 1.0, shape)
    costs[..., 0] *= 0.1
    initial = np.full(num_states, 0.5 / (num_states - 1))
    initial[0] = 0.5
    return op.CMDP(transitions, generator.random(shape), costs, cost_limit, initial)


MANY_STATES = random_market((4, 80, 2), 1.2)
MANY = cases.every_learner(MANY_STATES, 500, op.Scaled(0.0001))


# Above 64 states, P-hat is kept as lists of the successors seen while these are short, and in full from
# then on; the order of additions depends on it.
@pytest.mark.parametrize("name", MANY)
@pytest.mark.parametrize("middle", [20, 300])
def test_a_restored_learner_of_many_states_continues_bit_for_bit(name, middle):
    learner = cases.driven(MANY[name](), MANY_STATES, middle)
    successors = (learner.estimates.transition_counts > 0).sum(axis=-1).max()
    assert successors < 20 if middle == 20 else successors > 40
    other = restored(learner)
    if name == HIGHS:
        learner = copy.copy(learner)
    sources = check_same_future(learner, other, MANY_STATES, range(middle, middle + 20), look=False)
    assert name != "OptPess-LP" or "PessimisticSet" in sources


LARGE_MARKET = random_market((10, 20, 4), 3.0)
LARGE = cases.every_learner(LARGE_MARKET, 10, op.Scaled(0.02))


@pytest.mark.parametrize("name", LARGE)
def test_a_stored_learner_is_little_more_than_its_counts_and_policies(name):
    sampled = op.sample(LARGE_MARKET, cases.always_first(LARGE_MARKET), 10, seed=1)
    learner = LARGE[name]()
    for states, _, rewards, costs in zip(*sampled, strict=True):
        actions = cases.actions_of(learner.next_policy(), states)
        learner.observe(states, actions, rewards, costs[0])
    assert len(pickle.dumps(learner)) < MOST_BYTES_OF.get(name, MOST_BYTES)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_flipped_byte_is_refused(name):
    learner = cases.driven(LEARNERS[name](), MARKET, 40)
    state, generator = learner.__getstate__(), np.random.default_rng(12)
    stored = state["_inner"]
    for _ in range(FLIPS):
        damaged = bytearray(stored)
        damaged[generator.integers(len(damaged))] ^= int(generator.integers(1, 256))
        fresh = object.__new__(type(learner))
        with pytest.raises(ValueError, match=r"^not a stored learner"):
            fresh.__setstate__(state | {"_inner": bytes(damaged)})
        assert not vars(fresh), "a refused learner should stay empty"
    other = object.__new__(type(learner))
    other.__setstate__(state)
    assert cases.stored(other) == stored


@pytest.mark.parametrize("name", LEARNERS)
def test_cut_or_foreign_bytes_are_refused(name):
    state = LEARNERS[name]().__getstate__()
    stored = state["_inner"]
    for wrong in (b"", stored[:-1], stored[: len(stored) // 2], b"\xff" * 64):
        fresh = object.__new__(type(LEARNERS[name]()))
        with pytest.raises(ValueError, match=r"^not a stored learner"):
            fresh.__setstate__(state | {"_inner": wrong})
        # The right checksum of wrong bytes: the core refuses them.
        with pytest.raises(ValueError, match=r"^not a stored learner"):
            fresh.__setstate__(state | {"_inner": wrong, "_checksum": zlib.crc32(wrong)})
    without = {key: value for key, value in state.items() if key != "_checksum"}
    with pytest.raises(ValueError, match=r"^not a stored learner"):
        fresh.__setstate__(without)
