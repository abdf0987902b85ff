"""The mathematics of exact evaluation, on random problems; the expected side is plain NumPy."""

import numpy as np
import optpess as op
import pytest
from hypothesis import given
from support import problems as families
from support import reference
from support.problems import FORMS, problems


def close(found, expected, tolerance=1e-12):
    """Equal up to `tolerance`, relative to the largest number in `expected` (or to 1)."""
    scale = max(1.0, float(np.max(np.abs(expected))))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@given(problems())
def test_values_agree_with_plain_numpy(problem):
    policy, g, P, mu, kernel = problem.policy, problem.g, problem.P, problem.mu, problem.kernel
    close(op.state_values(policy, g, kernel), reference.state_values(policy, g, P))
    close(op.evaluate(policy, g, kernel, mu), reference.evaluate(policy, g, P, mu))


@given(problems())
def test_occupancies_agree_with_plain_numpy(problem):
    policy, P, mu = problem.policy, problem.P, problem.mu
    close(op.occupancy(policy, problem.kernel, mu), reference.occupancy(policy, P, mu))


@given(problems())
def test_policies_read_off_occupancies_agree_with_plain_numpy(problem):
    visits = reference.occupancy(problem.policy, problem.P, problem.mu)
    completion = problem.another_policy()
    found = op.policy_from_occupancy(visits, completion)
    close(found, reference.policy_from_occupancy(visits, completion))


@given(problems())
def test_mixtures_agree_with_plain_numpy(problem):
    policies = [problem.policy, problem.another_policy(), problem.another_policy()]
    weights = families.distributions(problem.generator, (3,))
    found = op.mix_policies(policies, weights, problem.kernel, problem.mu)
    close(found, reference.mix_policies(policies, weights, problem.P, problem.mu))


@given(problems())
def test_backward_induction_agrees_with_plain_numpy(problem):
    policy, values = op.backward_induction(problem.g, problem.kernel)
    expected_policy, expected_values = reference.backward_induction(problem.g, problem.P)
    close(values, expected_values)
    close(policy, expected_policy)  # g is continuous, so ties have probability zero


@given(problems())
def test_a_tie_goes_to_the_lowest_action(problem):
    policy, _ = op.backward_induction(np.zeros(problem.shape), problem.kernel)
    np.testing.assert_array_equal(policy[..., 0], 1.0)  # exact: probabilities of a sure action


@given(problems())
def test_the_greedy_values_are_those_of_the_greedy_policy(problem):
    policy, values = op.backward_induction(problem.g, problem.kernel)
    close(op.state_values(policy, problem.g, problem.kernel), values)


@given(problems())
def test_no_policy_beats_backward_induction(problem):
    _, best = op.backward_induction(problem.g, problem.kernel)
    values = op.state_values(problem.policy, problem.g, problem.kernel)
    assert np.all(values <= best + 1e-12 * max(1.0, np.abs(best).max()))


@pytest.mark.parametrize("expectation", ["first", "second"])
@given(problem=problems())
def test_each_form_of_the_lemma_is_the_difference_of_two_values(expectation, problem):
    policy, g, mu = problem.policy, problem.g, problem.mu
    form = problem.generator.choice(FORMS)
    g2, P2, kernel2 = problem.another_model(form, problem.generator.choice(families.MASS))
    both = (policy, g, problem.kernel, g2, kernel2, mu)
    expected = op.evaluate(policy, g2, kernel2, mu) - op.evaluate(policy, g, problem.kernel, mu)
    size = max(abs(reference.evaluate(policy, abs(g), problem.P, mu)), 1.0)
    size = max(size, reference.evaluate(policy, abs(g2), P2, mu))
    assert abs(op.value_difference(*both, expectation) - expected) <= 1e-10 * size
    plain = reference.value_difference(policy, g, problem.P, g2, P2, mu)
    assert abs(op.value_difference(*both, expectation) - plain) <= 1e-10 * size


@given(problems())
def test_occupancy_times_signal_is_the_value(problem):
    visits = op.occupancy(problem.policy, problem.kernel, problem.mu)
    value = op.evaluate(problem.policy, problem.g, problem.kernel, problem.mu)
    close((visits * problem.g).sum(), value)


@given(problems(mass=["kept"]))
def test_each_step_of_an_occupancy_holds_all_the_mass_of_a_stochastic_kernel(problem):
    visits = op.occupancy(problem.policy, problem.kernel, problem.mu)
    close(visits.sum(axis=(1, 2)), np.ones(problem.shape[0]))


@given(problems())
def test_an_occupancy_survives_the_way_through_its_policy(problem):
    visits = op.occupancy(problem.policy, problem.kernel, problem.mu)
    policy = op.policy_from_occupancy(visits, problem.another_policy())
    close(op.occupancy(policy, problem.kernel, problem.mu), visits)


@given(problems())
def test_a_policy_survives_the_way_through_its_occupancy_where_mass_arrives(problem):
    visits = op.occupancy(problem.policy, problem.kernel, problem.mu)
    policy = op.policy_from_occupancy(visits, problem.another_policy())
    met = visits.sum(axis=2) > 0
    close(policy[met], problem.policy[met])


@given(problems())
def test_a_mixture_has_the_average_start_value_of_its_parts_for_every_signal(problem):
    policies = [problem.policy, problem.another_policy()]
    weights = families.distributions(problem.generator, (2,))
    mixed = op.mix_policies(policies, weights, problem.kernel, problem.mu)
    for signal in (problem.g, problem.g**2, np.ones(problem.shape)):
        each = [op.evaluate(policy, signal, problem.kernel, problem.mu) for policy in policies]
        close(op.evaluate(mixed, signal, problem.kernel, problem.mu), weights @ each)


@given(problems())
def test_relabelling_the_states_permutes_every_answer(problem):
    policy, g, P, mu = problem.policy, problem.g, problem.P, problem.mu
    order = problem.generator.permutation(problem.shape[1])
    new_policy, new_g, new_mu = policy[:, order], g[:, order], mu[order]
    kernel = families.in_form(P[:, order][..., order], problem.generator.choice(FORMS))
    old = problem.kernel
    close(op.evaluate(new_policy, new_g, kernel, new_mu), op.evaluate(policy, g, old, mu))
    values = op.state_values(policy, g, old)
    close(op.state_values(new_policy, new_g, kernel), values[:, order])
    visits = op.occupancy(policy, old, mu)
    close(op.occupancy(new_policy, kernel, new_mu), visits[:, order])
    best_policy, best = op.backward_induction(g, old)
    new_best_policy, new_best = op.backward_induction(new_g, kernel)
    close(new_best, best[:, order])
    close(new_best_policy, best_policy[:, order])


@given(problems(forms=["array", "Transitions", "sparse"]))
def test_the_last_slice_of_the_transitions_may_hold_anything(problem):
    wild = np.array(problem.P)
    wild[-1] = np.nan
    for kernel in (wild, op.Transitions(wild)):
        value = op.evaluate(problem.policy, problem.g, kernel, problem.mu)
        close(value, op.evaluate(problem.policy, problem.g, problem.kernel, problem.mu))


@given(problems())
def test_a_signal_given_once_is_the_same_signal_at_every_step(problem):
    once, repeated = problem.g[0], np.broadcast_to(problem.g[0], problem.shape)
    rest = (problem.kernel, problem.mu)
    found = op.evaluate(problem.policy, once, *rest)
    assert found == op.evaluate(problem.policy, repeated, *rest)  # exact: the same operations
