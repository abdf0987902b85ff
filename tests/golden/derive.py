"""Recomputes every expected number of the golden files in exact fractions and compares.

Needs nothing but the standard library and shares no code with the package, so that a wrong answer
in a file cannot hide behind a wrong answer of the program. Run it after editing a file:
``python tests/golden/derive.py``.
"""

from __future__ import annotations

import sys
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

Row = list[Fraction]
Table = list[list[Row]]  # [H][S][A]


def exact(value: Any) -> Any:
    """Nested lists of fraction strings as nested lists of fractions."""
    return [exact(entry) for entry in value] if isinstance(value, list) else Fraction(value)


class Problem:
    """A golden file, with stationary tables repeated for each step."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.horizon, self.states, self.actions = raw["horizon"], raw["states"], raw["actions"]
        steps = self.horizon if raw["stationary"] else 1
        self.transitions = self._per_step(raw["transitions"], steps)
        self.rewards: Table = self._per_step(raw["rewards"], steps)
        self.costs: Table = self._per_step(raw["costs"], steps)
        self.initial: Row = exact(raw["initial"])
        self.limit = Fraction(raw["limit"])

    @staticmethod
    def _per_step(value: Any, copies: int) -> Any:
        return exact(value) if copies == 1 else [exact(value)] * copies

    def quality(self, signal: Table, values: Row, h: int, s: int, a: int) -> Fraction:
        """g_h(s,a) + sum over s' of P_h(s'|s,a) V_{h+1}(s')."""
        row = self.transitions[h][s][a]
        ahead = sum((p * v for p, v in zip(row, values, strict=True)), Fraction(0))
        return signal[h][s][a] + ahead

    def values(self, policy: Table, signal: Table) -> list[Row]:
        """V_h(s) of a policy, ``[H + 1][S]``."""
        tables = [[Fraction(0)] * self.states]
        for h in reversed(range(self.horizon)):
            here = [
                sum(
                    (
                        policy[h][s][a] * self.quality(signal, tables[0], h, s, a)
                        for a in range(self.actions)
                    ),
                    Fraction(0),
                )
                for s in range(self.states)
            ]
            tables.insert(0, here)
        return tables

    def best(self, signal: Table) -> tuple[list[Row], list[list[int]]]:
        """max over policies of V_h(s), and the lowest action that attains it."""
        tables: list[Row] = [[Fraction(0)] * self.states]
        choices: list[list[int]] = []
        for h in reversed(range(self.horizon)):
            rows = [
                [self.quality(signal, tables[0], h, s, a) for a in range(self.actions)]
                for s in range(self.states)
            ]
            tables.insert(0, [max(row) for row in rows])
            choices.insert(0, [row.index(max(row)) for row in rows])
        return tables, choices

    def occupancy(self, policy: Table) -> Table:
        """q_h(s,a), ``[H][S][A]``."""
        arrivals, masses = self.initial, []
        for h in range(self.horizon):
            masses.append([[d * p for p in row] for d, row in zip(arrivals, policy[h], strict=True)])
            arrivals = [
                sum(
                    masses[h][s][a] * self.transitions[h][s][a][target]
                    for s in range(self.states)
                    for a in range(self.actions)
                )
                for target in range(self.states)
            ]
        return masses

    def start(self, values: list[Row]) -> Fraction:
        return sum((m * v for m, v in zip(self.initial, values[0], strict=True)), Fraction(0))

    def deterministic(self, choices: list[list[int]]) -> Table:
        return [[[Fraction(a == c) for a in range(self.actions)] for c in row] for row in choices]


def check(raw: dict[str, Any]) -> list[str]:
    """The names of all expected numbers that are wrong."""
    problem, wrong = Problem(raw), []

    def expect(name: str, found: Any, stated: Any) -> None:
        if found != stated:
            wrong.append(f"{raw['name']}: {name} is {found}, the file says {stated}")

    for known in raw["policies"]:
        policy = exact(known["probabilities"])
        for signal, table in (("reward", problem.rewards), ("cost", problem.costs)):
            values = problem.values(policy, table)
            name = f"{known['name']}.{signal}"
            expect(name, problem.start(values), Fraction(known[signal]))
            expect(f"{name}_values", values, exact(known[f"{signal}_values"]))
        expect(f"{known['name']}.occupancy", problem.occupancy(policy), exact(known["occupancy"]))

    values, choices = problem.best(problem.rewards)
    free = raw["unconstrained"]
    expect("unconstrained.value", problem.start(values), Fraction(free["value"]))
    expect("unconstrained.values", values, exact(free["values"]))
    expect("unconstrained.choices", choices, free["choices"])

    # A mixture that meets the limit attains the value; the multiplier proves that none does better:
    # V* <= max over policies of V(r - l c) + l tau, for every l >= 0.
    bound = raw["constrained"]
    value = cost = Fraction(0)
    for part in bound["mixture"]:
        policy = problem.deterministic(part["choices"])
        reward = problem.start(problem.values(policy, problem.rewards))
        spent = problem.start(problem.values(policy, problem.costs))
        expect("mixture.reward", reward, Fraction(part["reward"]))
        expect("mixture.cost", spent, Fraction(part["cost"]))
        value += Fraction(part["weight"]) * reward
        cost += Fraction(part["weight"]) * spent
    weights = sum(Fraction(part["weight"]) for part in bound["mixture"])
    expect("mixture weights", weights, Fraction(1))
    expect("constrained.value", value, Fraction(bound["value"]))
    expect("constrained.cost", cost, Fraction(bound["cost"]))
    expect("constrained cost within the limit", cost <= problem.limit, True)
    multiplier = Fraction(bound["multiplier"])
    lagrangian = [
        [[r - multiplier * c for r, c in zip(*rows, strict=True)] for rows in zip(*step, strict=True)]
        for step in zip(problem.rewards, problem.costs, strict=True)
    ]
    dual = problem.start(problem.best(lagrangian)[0]) + multiplier * problem.limit
    expect("dual bound", dual, Fraction(bound["value"]))
    return wrong


def main() -> int:
    wrong = []
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        wrong += check(tomllib.loads(path.read_text(encoding="utf-8")))
    print("\n".join(wrong) or "every expected number is exact")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
