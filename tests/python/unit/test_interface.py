"""The public names: which there are, which module they name, their types, pickles and docstrings."""

import ast
import copy
import importlib.metadata
import inspect
import pickle
import re
import typing
from pathlib import Path

import numpy as np
import optpess as op
import pytest
from optpess import _core
from support import healthy

FIRST_NAMES = """
CMDP CUCRL OPDOP AlwaysBaseline Bernoulli BoundedViolation Certificate CertificateError CheckpointError
Comparison Deployment Deterministic Endpoint ExtendedPlan Forecast Frontier Gaussian InfeasibleError
InvalidInputError NoSafetyMarginError OptCMDP OptCMDPBonus OptDualCMDP OptPessError OptPessLP
OptPessPrimalDual OptPrimalDualCMDP PaperRadius Plan ProtocolError Run SafeBaseline SafetyMargin Scaled
Shape SolverError SubGaussianRadius Theorem Transitions UnconstrainedOptimistic Uniform ZeroViolation
backward_induction compare evaluate extended_induction forecast frontier load_run mix_policies occupancy
policy_from_occupancy sample simulate solve solve_extended solve_least_cost solve_signals
solve_unconstrained state_values value_difference zoo
"""
THINGS = {
    name: getattr(op, name)
    for name in op.__all__
    if inspect.isclass(getattr(op, name)) or inspect.isroutine(getattr(op, name))
}
CLASSES = {name: thing for name, thing in THINGS.items() if inspect.isclass(thing)}
LEARNERS = [name for name, thing in CLASSES.items() if issubclass(thing, op.Learner)]
STUB = Path(op.__file__).with_name("_core.pyi")


def test_no_public_name_has_gone():
    assert set(FIRST_NAMES.split()) <= set(op.__all__)


def test_the_prompt_offers_the_public_names_and_nothing_else():
    assert dir(op) == sorted(op.__all__)
    assert all(hasattr(op, name) for name in dir(op))


def test_the_version_is_that_of_the_installed_package():
    assert op.__version__ == importlib.metadata.version("optpess")


@pytest.mark.parametrize("name", THINGS)
def test_a_public_name_says_that_it_lives_in_the_package(name):
    thing = THINGS[name]
    assert (thing.__module__, thing.__qualname__) == ("optpess", name)
    assert pickle.loads(pickle.dumps(thing)) is thing


@pytest.mark.parametrize("name", CLASSES)
def test_the_types_of_the_fields_of_a_public_class_can_be_read(name):
    # Annotations that are text are looked up in the module that a class names as its own.
    fields = getattr(CLASSES[name], "__dataclass_fields__", {})
    assert set(fields) <= set(typing.get_type_hints(CLASSES[name]))


@pytest.mark.parametrize("name", ["Theorem", "SafetyMargin", "Certificate", "ZeroViolation", "Finding"])
def test_the_repr_of_a_value_is_a_call_that_makes_it(name):
    made = {
        "Theorem": op.Theorem(),
        "SafetyMargin": op.SafetyMargin(1.0, 0.5),
        "Certificate": op.Certificate([0.5, 0.25], [0.75, 0.5], 0.0),
        "ZeroViolation": op.ZeroViolation(0.95),
        "Finding": op.Finding(3, 1, 2, 0.5),
    }[name]
    assert eval(repr(made), vars(op) | {"array": np.array}) == made


def test_records_plans_and_certificates_survive_pickling():
    plan = op.solve(op.zoo.pair())
    again = pickle.loads(pickle.dumps(plan))
    np.testing.assert_array_equal(again.occupancy, plan.occupancy)
    assert again.certificate.gap == plan.certificate.gap
    certificate = op.Certificate([0.5], [0.75])
    assert pickle.loads(pickle.dumps(certificate)) == certificate
    assert hash(pickle.loads(pickle.dumps(certificate))) == hash(certificate)


# Learners describe their own arguments


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_describes_exactly_the_arguments_it_takes(name):
    text = inspect.getdoc(CLASSES[name])
    if name == "Learner":
        assert "Args:" not in text
        return
    listed = text.split("Args:\n")[1].split("\n\n")[0]
    described = re.findall(r"^    (\w+): ", listed, flags=re.MULTILINE)
    assert described == list(inspect.signature(CLASSES[name]).parameters)
    assert "..." not in listed


FUNCTIONS = {name: thing for name, thing in THINGS.items() if inspect.isroutine(thing)} | {
    f"{module}.{name}": getattr(getattr(op, module), name)
    for module in ("environments", "zoo")
    for name in getattr(op, module).__all__
    if inspect.isroutine(getattr(getattr(op, module), name))
}


def described(text):
    """The arguments that a docstring describes, in order; several may share a line."""
    listed = re.split(r"^ *Args:\n", text, flags=re.MULTILINE)
    if len(listed) == 1:
        return []
    lines = re.findall(r"^    (\w+(?:, \w+)*): ", listed[1].split("\n\n")[0], flags=re.MULTILINE)
    return [name for line in lines for name in line.split(", ")]


# Compiled functions that describe what they compute; their arguments are those of `evaluate`.
SHORT = ("occupancy", "policy_from_occupancy", "state_values", "value_difference")


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in SHORT])
def test_a_function_describes_exactly_the_arguments_it_takes(name):
    assert described(inspect.getdoc(FUNCTIONS[name])) == list(
        inspect.signature(FUNCTIONS[name]).parameters
    )


@pytest.mark.parametrize("name", ["CMDP", "Certificate", "StagedRollout"])
def test_a_class_describes_exactly_the_arguments_it_takes(name):
    assert described(inspect.getdoc(CLASSES[name])) == list(inspect.signature(CLASSES[name]).parameters)


@pytest.mark.parametrize("name", LEARNERS)
def test_the_help_of_a_learner_fits_a_page_and_names_no_private_part(name):
    text = inspect.getdoc(CLASSES[name])
    assert len(text.splitlines()) < 80
    assert max(map(len, text.splitlines())) <= 105
    assert not re.search(r"\b_\w+|_core|object at 0x", text)
    public = [key for key in dir(CLASSES[name]) if key[0] != "_"]
    assert {"next_policy", "observe", "abandon", "save", "guarantee", "progress"} <= set(public)


def test_the_base_class_of_learners_is_no_learner():
    with pytest.raises(TypeError, match="base class"):
        op.Learner()


# Certificates


def test_a_certificate_shows_costs_limits_and_slack():
    certificate = op.Certificate([0.5, 1.0], [0.75, 1.0], 1e-9)
    np.testing.assert_array_equal(certificate.slack, [0.25, 0.0])
    assert (certificate.least_slack, certificate.repair) == (0.0, 1e-9)
    for name in ("cost", "limit"):
        with healthy.refused(None, "2 constraints", f"{name}s"):
            getattr(certificate, name)
    single = op.Certificate([0.5], [0.75])
    assert (single.cost, single.limit, single.least_slack) == (0.5, 0.75, 0.25)
    assert single != certificate
    assert single != 0.5


@pytest.mark.parametrize(
    ("costs", "limits"),
    [
        ([np.nextafter(0.6, 1)], [0.6]),
        ([0.5, 0.7], [0.6, 0.6]),
        ([np.nan], [0.6]),
        ([0.5], [np.nan]),
    ],
)
def test_a_certificate_of_a_cost_above_its_limit_cannot_be_made(costs, limits):
    with pytest.raises(op.CertificateError, match="not within the limits"):
        op.Certificate(costs, limits, 0.0)


@pytest.mark.parametrize(
    ("costs", "limits"), [([], []), (0.5, 0.6), ([0.5], [0.6, 0.6]), ([[0.5]], [[0.6]])]
)
def test_a_certificate_without_one_cost_for_each_limit_cannot_be_made(costs, limits):
    with healthy.refused(None, "costs has shape", "[M]"):
        op.Certificate(costs, limits)


def test_a_certificate_cannot_be_changed():
    given = np.array([0.5])
    certificate = op.Certificate(given, [0.6])
    given[0] = 9.0
    assert certificate.cost == 0.5
    with pytest.raises(ValueError, match="read-only"):
        certificate.costs[0] = 9.0
    with pytest.raises(AttributeError):
        certificate.costs = given
    for twin in (pickle.loads(pickle.dumps(certificate)), copy.deepcopy(certificate)):
        with pytest.raises(ValueError, match="read-only"):
            twin.costs[0] = 9.0


# The stub of the compiled module


def stub_members():
    """(dotted name, docstring or None) of the functions, classes and members of the stub."""
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, ast.get_docstring(node)
        elif isinstance(node, ast.ClassDef) and hasattr(_core, node.name):
            yield node.name, ast.get_docstring(node)
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and member.name[0] != "_":
                    yield f"{node.name}.{member.name}", ast.get_docstring(member)


DOCSTRINGS = dict(stub_members())
# What a public name of the same spelling wraps.
WRAPPED = ("Learner", "StagedRollout", "solve_extended", "sample")
# A model's members are public through CMDP.
PUBLIC = [
    name for name in DOCSTRINGS if name.split(".")[0] in op.__all__ and name.split(".")[0] not in WRAPPED
] + [name for name in DOCSTRINGS if name.startswith("Model.")]


@pytest.mark.parametrize("name", PUBLIC)
def test_the_stub_documents_what_is_public_as_the_compiled_module_does(name):
    thing = _core
    for part in name.split("."):
        thing = getattr(thing, part)
    assert DOCSTRINGS[name] == inspect.getdoc(thing)


def test_the_stub_takes_no_argument_of_any_type():
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    arguments = [
        (function.name, argument.arg, ast.unparse(argument.annotation))
        for function in functions
        for argument in (*function.args.args, *function.args.kwonlyargs)
        if argument.annotation is not None
    ]
    assert len(arguments) > 50
    assert [each for each in arguments if re.search(r"\bAny\b|\bobject\b(?!\])", each[2])] == []
