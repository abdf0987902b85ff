"""The shared coin of Aspnes and Herlihy (1990) for two processes, a standard model of probabilistic
model checking, as a UMB file.

A process flips its coin, moves the shared counter by one in the coin's direction, and looks: at either
end it decides, in between it flips again. Who moves next is the choice of the scheduler. With K = 2 the
model has 272 states, as in the benchmark collection of PRISM.
"""

from __future__ import annotations

from fractions import Fraction

import umbi.binary
import umbi.datatypes
import umbi.umb

PROCESSES, BOUND = 2, 2
TOP = 2 * (BOUND + 1) * PROCESSES
FLIP, WRITE, LOOK, DECIDED = range(4)
RATIONAL = umbi.datatypes.NumericPrimitiveType.RATIONAL
DOUBLE = umbi.datatypes.NumericPrimitiveType.DOUBLE


def moves(state):
    """The choices of the scheduler: (label, whether a coin is flipped, [(probability, successor)])."""
    counter, processes = state
    found = []
    for number, (place, coin) in enumerate(processes):

        def after(place, coin, counter=counter, number=number):
            changed = list(processes)
            changed[number] = (place, coin)
            return counter, tuple(changed)

        if place == FLIP:
            found.append((number, True, [(0.5, after(WRITE, 0)), (0.5, after(WRITE, 1))]))
        elif place == WRITE:
            found.append((number, False, [(1.0, after(LOOK, 0, counter + (1 if coin else -1)))]))
        elif place == LOOK and PROCESSES < counter < TOP - PROCESSES:
            found.append((number, False, [(1.0, after(FLIP, 0))]))
        elif place == LOOK:
            found.append((number, False, [(1.0, after(DECIDED, int(counter >= TOP - PROCESSES)))]))
    # All have decided: nothing moves any more.
    return found or [(PROCESSES, False, [(1.0, state)])]


def explored():
    """All reachable states, the first one first, and their choices."""
    first = (TOP // 2, ((FLIP, 0),) * PROCESSES)
    numbers, choices, reached = {first: 0}, [], [first]
    for state in reached:  # grows while it is walked
        found = moves(state)
        choices.append(found)
        for _, _, branches in found:
            for _, successor in branches:
                if successor not in numbers:
                    numbers[successor] = len(numbers)
                    reached.append(successor)
    return numbers, choices


def write(path, *, exact=False):
    """Writes the model with the rewards ``flips`` (on choices), ``undecided`` (on states: processes that
    have not decided) and ``heads`` (on branches: coins that show heads).
    """
    numbers, choices = explored()
    every = [choice for found in choices for choice in found]
    branches = [(p, s, label) for label, _, found in every for p, s in found]
    heads = [float(flipped and place == 1) for _, flipped, found in every for place in range(len(found))]
    rewards = {
        "flips": ("choices", [float(flipped) for _, flipped, _ in every]),
        "undecided": (
            "states",
            [float(sum(place != DECIDED for place, _ in state[1])) for state in numbers],
        ),
        "heads": ("branches", heads),
    }
    index = umbi.umb.index
    double = umbi.binary.SizedType.for_type(DOUBLE)
    probabilities = [p for p, _, _ in branches]
    if exact:
        probabilities = [Fraction(p) for p in probabilities]
    system = index.TransitionSystem(
        time="discrete",
        num_players=1,
        num_states=len(numbers),
        num_initial_states=1,
        num_choices=len(every),
        num_choice_actions=PROCESSES + 1,
        num_branches=len(branches),
        branch_probability_type=umbi.binary.SizedType.for_type(RATIONAL) if exact else double,
    )
    starts, ends = [0], [0]
    for found in choices:
        starts.append(starts[-1] + len(found))
    for _, _, found in every:
        ends.append(ends[-1] + len(found))
    umbi.umb.write(
        umbi.umb.ExplicitUmb(
            index=index.UmbIndex(
                transition_system=system,
                annotations={
                    "rewards": {
                        name: index.AnnotationDescription(applies_to=[kind], type=double)
                        for name, (kind, _) in rewards.items()
                    }
                },
            ),
            state_is_initial=[state == 0 for state in range(len(numbers))],
            state_to_choices=starts,
            choice_to_branches=ends,
            branch_to_target=[numbers[s] for _, s, _ in branches],
            branch_to_probability=probabilities,
            choice_to_choice_action=[label for label, _, _ in every],
            annotations={"rewards": {name: {kind: values} for name, (kind, values) in rewards.items()}},
        ),
        path,
    )
