//! The Python functions of exact evaluation.

use numpy::PyArrayDyn;
use optpess_core::error::Error;
use optpess_core::evaluate as exact;
use optpess_core::model::InitialDistribution;
use optpess_core::policy::MarkovPolicy;
use optpess_core::shape::Shape;
use optpess_core::table::Signal;
use pyo3::prelude::*;

use crate::call;
use crate::convert::{Input, array_out, shape_of, to_py, type_name};
use crate::error::{to_python, unknown_choice};
use crate::transitions::kernel_of_shape;

type FloatArray<'py> = Bound<'py, PyArrayDyn<f64>>;

/// A policy `[H, S, A]`; its shape is the shape of the problem.
pub fn policy_in(name: &'static str, object: &Bound<'_, PyAny>) -> PyResult<MarkovPolicy> {
    let input = Input::new(name, object)?.with_policy_axes()?;
    let shape = shape_of(&input)?;
    to_py(MarkovPolicy::new(name, shape, input.floats()?))
}

/// A signal `[H, S, A]`, or `[S, A]` if it is the same at every step.
pub fn signal_in(name: &'static str, object: &Bound<'_, PyAny>, shape: Shape) -> PyResult<Signal> {
    let input = Input::new(name, object)?;
    let [horizon, states, actions] = shape.sizes();
    let axes = "[H, S, A] or, if stationary, [S, A]";
    if input.shape().len() == 2 {
        let input = input.with_shape(&[states, actions], axes)?;
        to_py(Signal::stationary(name, shape, input.floats()?))
    } else {
        let input = input.with_shape(&[horizon, states, actions], axes)?;
        match input.repeated_entry()? {
            Some(entry) => to_py(Signal::stationary(name, shape, entry.floats()?)),
            None => to_py(Signal::new(name, shape, input.floats()?)),
        }
    }
}

/// A distribution of the first state, `[S]`, or the number of that state.
pub fn initial_in(object: &Bound<'_, PyAny>, num_states: usize) -> PyResult<InitialDistribution> {
    let input = Input::new("initial", object)?;
    if let Some(state) = input.whole_number()? {
        return to_py(InitialDistribution::at(num_states, state));
    }
    let input = input.with_shape(&[num_states], "[S], or be the number of a state")?;
    to_py(InitialDistribution::new(num_states, input.floats()?))
}

/// V_1(mu; g, P): the expected sum of a signal over an episode, exactly.
///
/// Args:
///     policy: ``[H, S, A]``, each row a distribution over actions.
///     signal: ``[H, S, A]``, or ``[S, A]`` if the same at every step; any finite numbers.
///     transitions: ``[H, S, A, S]`` or ``[S, A, S]``; a list of A matrices ``[S, S]``; a sparse matrix
///         with the rows (h, s, a) or (s, a); or a :class:`Transitions`. Rows may sum to less than one.
///         The slice of the last step is ignored.
///     initial: ``[S]``, the distribution of the first state; or its number, if every episode starts
///         there.
///
/// Example:
///     >>> import numpy as np, optpess as op
///     >>> stay = np.eye(2).reshape(2, 1, 2)
///     >>> op.evaluate(np.ones((3, 2, 1)), [[1.0], [0.5]], stay, [0.5, 0.5])
///     2.25
#[pyfunction]
pub fn evaluate(
    py: Python<'_>,
    policy: &Bound<'_, PyAny>,
    signal: &Bound<'_, PyAny>,
    transitions: &Bound<'_, PyAny>,
    initial: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    let policy = policy_in("policy", policy)?;
    let shape = policy.shape();
    let signal = signal_in("signal", signal, shape)?;
    let initial = initial_in(initial, shape.num_states())?;
    let kernel = kernel_of_shape(transitions, shape)?;
    call::run(py, || exact::evaluate(&policy, &signal, &*kernel, &initial))
}

/// V_h(s; g, P) for every step and state, as an array ``[H + 1, S]`` whose last row is zero.
///
/// The arguments are those of :func:`evaluate`.
///
/// Example:
///     >>> import numpy as np, optpess as op
///     >>> stay = np.eye(2).reshape(2, 1, 2)
///     >>> op.state_values(np.ones((2, 2, 1)), [[1.0], [0.5]], stay)
///     array([[2. , 1. ],
///            [1. , 0.5],
///            [0. , 0. ]])
#[pyfunction]
pub fn state_values<'py>(
    py: Python<'py>,
    policy: &Bound<'py, PyAny>,
    signal: &Bound<'py, PyAny>,
    transitions: &Bound<'py, PyAny>,
) -> PyResult<FloatArray<'py>> {
    let policy = policy_in("policy", policy)?;
    let shape = policy.shape();
    let signal = signal_in("signal", signal, shape)?;
    let kernel = kernel_of_shape(transitions, shape)?;
    let values = call::run(py, || exact::state_values(&policy, &signal, &*kernel))?;
    array_out(
        py,
        values.into_data(),
        &[shape.horizon() + 1, shape.num_states()],
    )
}

/// q_h(s,a): how often each (state, action) is met at each step, as an array ``[H, S, A]``.
///
/// The arguments are those of :func:`evaluate`. The sum of ``occupancy * signal`` is the value of any
/// signal.
///
/// Example:
///     >>> import numpy as np, optpess as op
///     >>> op.occupancy(np.ones((2, 2, 1)), np.full((2, 1, 2), 0.5), [1.0, 0.0]).tolist()
///     [[[1.0], [0.0]], [[0.5], [0.5]]]
#[pyfunction]
pub fn occupancy<'py>(
    py: Python<'py>,
    policy: &Bound<'py, PyAny>,
    transitions: &Bound<'py, PyAny>,
    initial: &Bound<'py, PyAny>,
) -> PyResult<FloatArray<'py>> {
    let policy = policy_in("policy", policy)?;
    let shape = policy.shape();
    let initial = initial_in(initial, shape.num_states())?;
    let kernel = kernel_of_shape(transitions, shape)?;
    let visits = call::run(py, || exact::occupancy(&policy, &*kernel, &initial))?;
    array_out(py, visits.into_data(), &shape.sizes())
}

/// The policy that an occupancy describes; ``completion`` (a policy) decides wherever it has no mass.
///
/// Example:
///     >>> import numpy as np, optpess as op
///     >>> uniform = np.full((1, 2, 2), 0.5)
///     >>> op.policy_from_occupancy([[[0.25, 0.75], [0.0, 0.0]]], uniform).tolist()
///     [[[0.25, 0.75], [0.5, 0.5]]]
#[pyfunction]
pub fn policy_from_occupancy<'py>(
    py: Python<'py>,
    occupancy: &Bound<'py, PyAny>,
    completion: &Bound<'py, PyAny>,
) -> PyResult<FloatArray<'py>> {
    let input = Input::new("occupancy", occupancy)?;
    let shape = shape_of(&input)?;
    let otherwise = Input::new("completion", completion)?
        .with_policy_axes()?
        .with_shape(&shape.sizes(), "[H, S, A]")?;
    let (masses, otherwise) = (input.floats()?, otherwise.floats()?);
    let policy = call::run(py, || {
        let completion = MarkovPolicy::new("completion", shape, otherwise)?;
        exact::OccupancyMeasure::new("occupancy", shape, masses)?.induced_policy(&completion)
    })?;
    array_out(py, policy.into_data(), &shape.sizes())
}

/// The Markov policy with the same start value, for every signal, as drawing one of ``policies`` with
/// the probabilities ``weights`` once for the whole episode.
///
/// Only the start value is the same, not the values from every state and step. Where no mass arrives
/// the result is the weighted average of the policies.
///
/// Args:
///     policies: a sequence of policies ``[H, S, A]``.
///     weights: one probability a policy.
///     transitions, initial: as for :func:`evaluate`.
///
/// Example:
///     >>> import numpy as np, optpess as op
///     >>> left, right = np.array([[[1.0, 0.0]]]), np.array([[[0.0, 1.0]]])
///     >>> op.mix_policies([left, right], [0.25, 0.75], np.ones((1, 2, 1)), [1.0]).tolist()
///     [[[0.25, 0.75]]]
#[pyfunction]
pub fn mix_policies<'py>(
    py: Python<'py>,
    policies: &Bound<'py, PyAny>,
    weights: &Bound<'py, PyAny>,
    transitions: &Bound<'py, PyAny>,
    initial: &Bound<'py, PyAny>,
) -> PyResult<FloatArray<'py>> {
    let mut given: Vec<MarkovPolicy> = Vec::new();
    let each = policies.try_iter().map_err(|_| {
        to_python(&Error::UnsupportedType {
            array: "policies",
            found: type_name(policies),
            allowed: "policies [H, S, A], several in a list",
        })
    })?;
    for (index, policy) in each.enumerate() {
        let input = Input::new("policies", &policy?)?.with_policy_axes()?;
        let shape = shape_of(&input)?;
        let expected = given.first().map_or(shape, MarkovPolicy::shape);
        let input = input.with_shape(&expected.sizes(), "[H, S, A]")?;
        let data = input.floats()?;
        given.push(to_py(MarkovPolicy::labelled(
            "policies",
            &[index],
            shape,
            data,
        ))?);
    }
    let Some(first) = given.first() else {
        return Err(to_python(&Error::NothingGiven { what: "policies" }));
    };
    let shape = first.shape();
    let weights = Input::new("weights", weights)?
        .with_rank(1, "[policies]")?
        .floats()?;
    let initial = initial_in(initial, shape.num_states())?;
    let kernel = kernel_of_shape(transitions, shape)?;
    let mixed = call::run(py, || {
        exact::mix_policies(&given, &weights, &*kernel, &initial)
    })?;
    array_out(py, mixed.into_data(), &shape.sizes())
}

/// V_1(mu; g2, P2) - V_1(mu; g, P), computed by one of the two forms of the value-difference lemma.
///
/// With ``expectation="first"`` the expectation is taken under ``P`` with the values of ``(g2, P2)``;
/// with ``"second"``, under ``P2`` with the values of ``(g, P)``. Both are exact and equal the
/// difference of two calls of :func:`evaluate` up to rounding.
///
/// Example:
///     >>> import numpy as np, optpess as op
///     >>> policy, stay, mu = np.ones((2, 1, 1)), np.ones((1, 1, 1)), [1.0]
///     >>> op.value_difference(policy, [[0.25]], stay, [[1.0]], stay, mu, expectation="first")
///     1.5
#[pyfunction]
#[pyo3(signature = (policy, g, P, g2, P2, initial, expectation="first"))]
#[expect(
    non_snake_case,
    reason = "the names of the public interface, after the paper's symbols"
)]
#[expect(
    clippy::too_many_arguments,
    reason = "two models, a policy and a start"
)]
pub fn value_difference(
    py: Python<'_>,
    policy: &Bound<'_, PyAny>,
    g: &Bound<'_, PyAny>,
    P: &Bound<'_, PyAny>,
    g2: &Bound<'_, PyAny>,
    P2: &Bound<'_, PyAny>,
    initial: &Bound<'_, PyAny>,
    expectation: &str,
) -> PyResult<f64> {
    let expectation = match expectation {
        "first" => exact::Expectation::First,
        "second" => exact::Expectation::Second,
        other => {
            return Err(unknown_choice(
                "expectation",
                other,
                "\"first\" or \"second\"",
            ));
        }
    };
    let policy = policy_in("policy", policy)?;
    let shape = policy.shape();
    let (signal, signal2) = (signal_in("g", g, shape)?, signal_in("g2", g2, shape)?);
    let initial = initial_in(initial, shape.num_states())?;
    let (kernel, kernel2) = (kernel_of_shape(P, shape)?, kernel_of_shape(P2, shape)?);
    call::run(py, || {
        let (first, second) = ((&signal, &*kernel), (&signal2, &*kernel2));
        exact::value_difference(&policy, first, second, &initial, expectation)
    })
}
