"""``optpess solve`` and ``optpess frontier``: exact planning in a known model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from optpess import storage
from optpess.cli.options import Command, model_argument, number_option, output_option
from optpess.cli.output import Result, writing, written
from optpess.cli.stopping import interruptible
from optpess.display import table
from optpess.plan import frontier as curves
from optpess.plan import solve as planner
from optpess.plan.result import Frontier, Plan
from optpess.run import tables
from optpess.study.models import described, model_of

__all__ = ["frontier", "solve"]

# The most vertices of a frontier in a text.
_MOST_SHOWN = 20

_threads_option = number_option("--threads", metavar="N", help="By default one for each core.")


def _tolerance_option(meaning: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option("--tolerance", type=float, default=0.0, metavar="GAP", help=meaning)


@click.command(
    "solve",
    short_help="Find the best policy within the limits.",
    cls=Command,
    examples="""
    optpess solve ring
    optpess solve ring --cost-limit 1.5 --output cautious.npy
    optpess solve mine.npz --json
    """,
)
@model_argument
@click.option(
    "--cost-limit",
    type=float,
    multiple=True,
    metavar="C",
    help="A limit in place of the model's; once for each constraint.",
)
@click.option(
    "--engine", metavar="NAME", help="parametric, highs or columns; by default the fitting one."
)
@_tolerance_option("How far below the optimum the value may be; 0 for the optimum.")
@_threads_option
@click.option("--time-limit", type=float, metavar="SECONDS", help="Give up after so long.")
@output_option("--output", suffixes=(".npy",), help="Write the policy [H, S, A] to this .npy file.")
def solve(
    model: str, cost_limit: tuple[float, ...], engine: Any, output: Path | None, **effort: Any
) -> Result:
    """Find the best policy of MODEL within its limits, with a bound on how far it is from optimal.

    MODEL is a name of the zoo, a .npz file written by CMDP.save or a .umb file by CMDP.to_umb. The exit
    code is 3 if no policy meets the limits.
    """
    known = model_of(model)
    plan = interruptible(lambda: planner.solve(known, engine, cost_limit=cost_limit or None, **effort))
    if output is not None:
        with writing(output), storage.replacing(output) as file:
            np.save(file, plan.policy, allow_pickle=False)
    return Result(
        _plan_text(plan) + written(output),
        {
            "model": described(model, known),
            "value": plan.value,
            "bound": plan.certificate.bound,
            "gap": plan.certificate.gap,
            "costs": plan.costs,
            "limits": plan.certificate.limits,
            "slack": plan.certificate.slack,
            "multipliers": plan.multipliers,
            "binding": plan.binding,
            "engine": plan.engine,
            "inductions": plan.inductions,
            "output": output,
        },
    )


def _plan_text(plan: Plan) -> str:
    found = plan.certificate
    slack = np.where(plan.binding, 0.0, found.slack)  # else a rounding error
    rows = (
        (str(m), *(f"{number:.6g}" for number in each), "yes" if binds else "no")
        for m, (*each, binds) in enumerate(
            zip(found.costs, found.limits, slack, plan.multipliers, plan.binding, strict=True)
        )
    )
    header = ("constraint", "cost", "limit", "slack", "multiplier", "binds")
    title = f"value {plan.value:.6g}, at most {max(found.gap, 0.0):.2g} below the optimum"
    return f"{title} (engine {plan.engine})\n{table(header, rows)}"


@click.command(
    "frontier",
    short_help="Find the best reward for every limit.",
    cls=Command,
    examples="""
    optpess frontier ring
    optpess frontier media --output media.csv
    optpess frontier media --tolerance 0.01 --between 2 6
    """,
)
@model_argument
@_tolerance_option("How far below the curve the result may lie; 0 for all vertices.")
@click.option(
    "--between", type=float, nargs=2, metavar="LOW HIGH", help="The limits that matter; by default all."
)
@_threads_option
@number_option(
    "--max-vertices", metavar="N", help="Stop at so many; how far the curve may lie above is said."
)
@output_option("--output", suffixes=(".csv",), help="Write all vertices to this .csv file.")
def frontier(model: str, max_vertices: int | None, output: Path | None, **effort: Any) -> Result:
    """Find the best reward of MODEL for every limit: a concave curve, given by its vertices.

    MODEL is a name of the zoo, a .npz file written by CMDP.save or a .umb file by CMDP.to_umb, with one
    constraint.
    """
    known = model_of(model)
    further = effort if max_vertices is None else effort | {"max_vertices": max_vertices}
    curve = interruptible(lambda: curves.frontier(known, **further))
    if output is not None:
        with writing(output):
            tables.write_csv(output, {"cost": curve.costs, "value": curve.values})
    return Result(
        _curve_text(curve) + written(output),
        {
            "model": described(model, known),
            "limit": float(known.cost_limits[0]),
            "costs": curve.costs,
            "values": curve.values,
            "slopes": curve.slopes,
            "bound": curve.bound,
            "output": output,
        },
    )


def _curve_text(curve: Frontier) -> str:
    """The vertices; of many, some at equal distances and both ends."""
    shown = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), _MOST_SHOWN)).round().astype(int))
    slopes = [*(f"{slope:.6g}" for slope in curve.slopes), "-"]
    rows = ((f"{curve[i][0]:.6g}", f"{curve[i][1]:.6g}", slopes[i]) for i in shown.tolist())
    left = len(curve) - len(shown)
    rest = f"\nand {left} more vertices between them; --json and --output give all" if left else ""
    return table(("limit", "best value", "gain per unit"), rows) + rest
