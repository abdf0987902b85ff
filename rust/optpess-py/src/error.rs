//! The map from errors of the core to Python exceptions.

use optpess_core::error::Error;
use pyo3::prelude::*;
use strum::VariantNames;

mod exceptions {
    //! The classes are declared once, in `optpess/exceptions.py`.
    use pyo3::import_exception;
    import_exception!(optpess.exceptions, CertificateError);
    import_exception!(optpess.exceptions, InfeasibleError);
    import_exception!(optpess.exceptions, InvalidInputError);
    import_exception!(optpess.exceptions, NoSafetyMarginError);
    import_exception!(optpess.exceptions, ProtocolError);
    import_exception!(optpess.exceptions, SolverError);
}

/// The Python exception for a cause, with the cause's name as its attribute `kind`. Exhaustive on
/// purpose: a new cause does not compile until its exception has been chosen here.
pub fn to_python(error: &Error) -> PyErr {
    with_message(error, error.to_string())
}

/// [`to_python`] with a hint at what the caller may have meant.
pub fn with_hint(error: &Error, hint: &str) -> PyErr {
    with_message(error, format!("{error}; {hint}"))
}

fn with_message(error: &Error, message: String) -> PyErr {
    let raised = match error {
        Error::WrongRank { .. }
        | Error::ShapeMismatch { .. }
        | Error::EmptyAxis { .. }
        | Error::TooLarge { .. }
        | Error::UnsupportedType { .. }
        | Error::NotFinite { .. }
        | Error::OutOfRange { .. }
        | Error::ObservationOutOfRange { .. }
        | Error::WrongType { .. }
        | Error::Impossible { .. }
        | Error::NotADistribution { .. }
        | Error::KnowledgeContradicted { .. }
        | Error::SuccessorOutOfRange { .. }
        | Error::SuccessorsNotIncreasing { .. }
        | Error::MalformedOffsets { .. }
        | Error::NothingGiven { .. }
        | Error::NoSuchAction { .. }
        | Error::NoActionExists { .. }
        | Error::RuleWithoutProof { .. }
        | Error::NoSuchEngine { .. }
        | Error::StoredState { .. } => exceptions::InvalidInputError::new_err(message),
        Error::NoSafetyMargin { .. } => exceptions::NoSafetyMarginError::new_err(message),
        Error::OutOfTurn { .. } | Error::EpisodesExhausted { .. } => {
            exceptions::ProtocolError::new_err(message)
        }
        Error::Interrupted => pyo3::exceptions::PyKeyboardInterrupt::new_err(message),
        Error::Infeasible { .. } => exceptions::InfeasibleError::new_err(message),
        Error::NumericalTrouble { .. } => exceptions::SolverError::new_err(message),
        Error::CertificateFailed { .. } => exceptions::CertificateError::new_err(message),
    };
    let kind: &'static str = error.into();
    Python::attach(|py| {
        let exception = raised.value(py);
        let mut described = exception.setattr("kind", kind);
        if let Error::Infeasible { least_cost, .. } = error {
            described = described.and(exception.setattr("least_cost", *least_cost));
        }
        match described {
            Ok(()) => raised,
            Err(failure) => failure,
        }
    })
}

/// The error for a learner that another thread is using.
pub fn in_use() -> PyErr {
    exceptions::ProtocolError::new_err(
        "the learner is being used by another thread; give each thread a copy (copy.copy)",
    )
}

/// The error for a word that is not one of those allowed.
pub fn unknown_choice(what: &str, found: &str, allowed: &str) -> PyErr {
    exceptions::InvalidInputError::new_err(format!("{what} is {found:?}; allowed are {allowed}"))
}

/// The names of all causes of refusal the core knows.
#[pyfunction]
pub fn error_kinds() -> Vec<&'static str> {
    Error::VARIANTS.to_vec()
}
