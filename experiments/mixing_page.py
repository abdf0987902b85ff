"""The page docs/mixing-results.md, from the record of the experiment."""

from __future__ import annotations

from typing import Any

from mixing_problems import CASES, COVERAGE_DELTA, DELTA, SEED, SOPS_GROWTH

# The checks of the audit that are about certificates and confidence sets.
CHECKS = ("PlausibleTransitions", "PlausibleCost", "MemberCost", "CostDominance")
# The figures of the page, and what they show in words.
IMAGES = {
    "mixing-regret": "Regret over episodes: OptPess-Mix ends with the least on all but pair B",
    "mixing-cost": "True and certified expected cost over episodes: both learners stay below the limit",
    "mixing-weight": "Probability of not playing pi0: that of OptPess-Mix comes to 1 on three problems",
}


def table(header: str, rows: list[list[str]]) -> list[str]:
    """A table in markdown; the first column is text."""
    titles = [title.strip() for title in header.split("|")]
    rule = ["---", *("---:" for _ in titles[1:])]
    return ["| " + " | ".join(cells) + " |" for cells in (titles, rule, *rows)] + [""]


def met(found: float, bar: float | None) -> str:
    """The bar, and whether it is met."""
    return "" if bar is None else f"{bar:,} ({'met' if found <= bar else 'missed'})"


def of_sops(row: dict[str, Any]) -> str:
    """The median regret of S-OPS and its number of replicates."""
    return (
        "not run"
        if row["sops"] is None
        else f"{row['sops']['median']:,.0f} ({row['sops']['replicates']})"
    )


def regrets(found: dict[str, Any]) -> list[str]:
    """The median regret, the least and the greatest, and of how many replicates."""
    spread = f"{found['least']:,.0f} to {found['greatest']:,.0f}"
    return [f"{found['median']:,.0f}", spread, f"{found['replicates']:,}"]


def violations(found: dict[str, Any]) -> str:
    """Violating episodes, and of how many."""
    return f"{found['violating_episodes']:,} of {found['episodes'] * found['replicates']:.1e}"


def regret_lines(rows: dict[str, Any]) -> list[str]:
    """The part of the page about regret."""
    lines = ["## Regret and violations", ""]
    lines += [
        f"delta = {DELTA}, default settings, Bernoulli observations. S-OPS at its own constants, "
        f"told K, planning when a count has grown by {SOPS_GROWTH:.0%}. It takes no knowledge, so it is "
        "compared like with like only in rows where nothing is known; in the others OptPess-Mix "
        "knows more. In brackets: replicates of S-OPS. Violating: episodes of OptPess-Mix whose "
        "expected cost, over the coin, was above the limit. Ratio: always pi0 to the median.",
        "",
    ]
    order = [case.name for case in CASES if case.name in rows]
    rows = {name: rows[name] for name in order}  # rows that were run again stand where they stood
    cells = []
    for name, row in rows.items():
        ours, always = row["mix"], row["gap"] * row["mix"]["episodes"]
        cells.append(
            [
                name,
                *regrets(ours),
                met(ours["median"], row["bar"]),
                f"{always:,.0f}",
                f"{always / ours['median']:,.1f}",
                of_sops(row),
                violations(ours),
            ]
        )
    header = (
        "problem | median regret | least to greatest | replicates | bar | always pi0 | ratio | S-OPS"
    )
    lines += table(header + " | violating", cells)
    total = sum(row["mix"]["violating_episodes"] for row in rows.values())
    runs = sum(row["mix"]["replicates"] for row in rows.values())
    theirs = sum(row["sops"]["violating_episodes"] for row in rows.values() if row["sops"])
    lines += [
        f"In all: {total:,} violating episodes of OptPess-Mix in {runs:,} replicates; {theirs:,} "
        "of S-OPS.",
        "",
    ]
    missed = [
        f"- {name}: median {row['mix']['median']:,.0f}, bar {row['bar']:,}."
        for name, row in rows.items()
        if row["bar"] is not None and row["mix"]["median"] > row["bar"]
    ]
    if missed:
        lines += ["Bars that are missed:", "", *missed, ""]
    worse = [
        f"- {name}: {row['sops']['median']:,.0f} against {row['gap'] * row['sops']['episodes']:,.0f}."
        for name, row in rows.items()
        if row["sops"] and row["sops"]["median"] > row["gap"] * row["sops"]["episodes"]
    ]
    if worse:
        lines += ["S-OPS has more regret than always playing pi0 on:", "", *worse, ""]
    return lines


def unknown_lines(rows: dict[str, Any]) -> list[str]:
    """The part of the page about an unknown safe cost."""
    lines = ["## The safe policy's cost is not known", ""]
    lines += [
        f"`SafeBaseline.estimated`, stationary known, delta = {DELTA}: the learner plays the "
        "safe policy until it "
        "has a certificate of its cost.",
        "",
    ]
    cells = [
        [
            name,
            *regrets(row["mix"]),
            f"{row['gap'] * row['mix']['episodes']:,.0f}",
            f"{row['estimation_episodes']:,.0f}",
            violations(row["mix"]),
        ]
        for name, row in rows.items()
    ]
    header = "problem | median regret | least to greatest | replicates | always pi0"
    return lines + table(header + " | median episodes to estimate | violating", cells)


def several_lines(rows: dict[str, Any]) -> list[str]:
    """The part of the page about several constraints."""
    lines = ["## Two and three constraints", ""]
    lines += [
        f"Stationary known, delta = {DELTA}. The bar, for K = 1e5, is a fifth of always pi0; the longer "
        "runs show how the ratio goes on. Share: of always pi0.",
        "",
    ]
    cells = []
    for name, row in rows.items():
        always = row["gap"] * row["mix"]["episodes"]
        cells.append(
            [
                name,
                str(row["constraints"]),
                *regrets(row["mix"]),
                met(row["mix"]["median"], None if "1e+06" in name else round(always / 5)),
                f"{always:,.0f}",
                f"{row['mix']['median'] / always:.3f}",
                violations(row["mix"]),
            ]
        )
    header = "problem | constraints | median regret | least to greatest | replicates | bar"
    return lines + table(header + " | always pi0 | share | violating", cells)


def floors_lines(rows: dict[str, Any]) -> list[str]:
    """The part of the page about least regrets."""
    lines = ["## Beside the proved floors", ""]
    lines += [
        "The pairs of MA-OPS, K = 1e5, nothing known. Every learner that is safe on both "
        "problems of a pair has "
        "regret of at least sqrt(K)/(32 rho) on A (rho = 1/32), and of at least 1/(1152 d rho) "
        "on one of the two "
        "problems of B (d = 1/1024, rho = 1/64), with probability about 3/4. On A, shifted, "
        "nothing is claimed.",
        "",
    ]
    cells = [
        [
            name,
            "" if row["floor"] is None else f"{row['floor']:,.0f}",
            *regrets(row["mix"]),
            f"{row['sops']['median']:,.0f}",
            f"{row['gap'] * row['mix']['episodes']:,.0f}",
            f"{violations(row['mix'])}; {row['sops']['violating_episodes']:,}",
        ]
        for name, row in rows.items()
    ]
    header = "problem | floor | OptPess-Mix, median | least to greatest | replicates | S-OPS, median"
    lines += table(header + " | always pi0 | violating; of S-OPS", cells)
    far = [
        f"{row['mix']['median'] / row['floor']:,.0f} times on {name}"
        for name, row in rows.items()
        if row["floor"] is not None
    ]
    lines += [
        f"Regret is far above the floors: {', '.join(far)}. On B both learners "
        "stay within 1 % of always pi0 in the median.",
        "",
    ]
    return lines


def coverage_lines(rows: dict[str, Any]) -> list[str]:
    """The part of the page about confidence sets."""
    lines = ["## Coverage", ""]
    lines += [
        f"Small problems made to break confidence sets, delta = {COVERAGE_DELTA}, every set and "
        "every certificate "
        "checked against the truth whenever another mixture is deployed (`audit=True`: "
        + ", ".join(f"`{check}`" for check in CHECKS)
        + "). A replicate fails if one check fails once. p: exact binomial test of at most delta "
        "against more. "
        "Halved radii have no guarantee and show that the test can fail.",
        "",
    ]
    cells = [
        [
            name,
            f"{row['episodes']:,}",
            f"{row['replicates']:,}",
            f"{row['failing_replicates']:,}",
            f"{row['share']:.4f}",
            f"{row['upper_95']:.4f}",
            f"{row['p_value_above_delta']:.2g}",
            " / ".join(f"{row['failed'][check]:,}" for check in CHECKS),
            f"{row['violating_replicates']:,}",
        ]
        for name, row in rows.items()
    ]
    header = "problem | episodes | replicates | failing | share | its upper 95 % bound | p"
    lines += table(
        header + " | by check (transitions / cost / member / mixture) | violating replicates", cells
    )
    exceeded = [
        f"- {name}: replicates {', '.join(map(str, row['violating']))} (seed {SEED}), by at most "
        f"{row['worst_violation']:.2g}."
        for name, row in rows.items()
        if row.get("violating")
    ]
    if exceeded:
        lines += [
            "Replicates with full radii in which some mixture was above the limit, which the promise "
            f"allows in a share of {COVERAGE_DELTA}:",
            "",
            *exceeded,
            "",
        ]
    full = {name: row["share"] for name, row in rows.items() if "full" in name}
    halved = {name: row["share"] for name, row in rows.items() if "halved" in name}
    if full and halved:
        above = [name for name, share in halved.items() if share > COVERAGE_DELTA]
        lines += [
            f"The largest share with full radii is {max(full.values()):.4f}. With halved radii "
            + (
                f"it is above delta on {len(above)} of {len(halved)} problems, at most "
                f"{max(halved.values()):.4f}."
                if above
                else f"it stays below delta: {max(halved.values()):.4f} at most."
            ),
            "",
        ]
    return lines


def speed_lines(rows: dict[str, Any]) -> list[str]:
    """The part of the page about time."""
    small_rows = {name: row for name, row in rows.items() if "us" in row}
    lines = ["## Time", ""]
    lines += [
        "One thread, 1e6 episodes, planning and judging included, median of five runs. Later: from "
        "episode 1e6 to 3e6, where plans are rare.",
        "",
    ]
    cells = [
        [name, f"{row['us']:.3f}", met(row["us"], row["bar"]), f"{row['us_later']:.3f}"]
        for name, row in small_rows.items()
    ]
    lines += table("problem | us an episode | bar | later", cells)
    ways = ("AlwaysBaseline", "OptPess-LP on pi0", "sample")
    lines += [
        "A later episode against an episode of pi0, in us; in brackets the ratio, for which the bar "
        "is 1.5. What playing pi0 takes depends on who plays it. `AlwaysBaseline` is slow for what it "
        "does: a ratio below 1 says that, not that mixing is free. OptPess-LP has bonuses so large "
        "that it never leaves pi0; it counts and is judged too. `sample` only draws episodes and "
        "returns them.",
        "",
    ]
    cells = [
        [name, *(f"{row['us_pi0'][way]:.3f} ({row['ratio'][way]:.2f})" for way in ways)]
        for name, row in small_rows.items()
    ]
    lines += table("problem | " + " | ".join(ways), cells)
    for way in ways:
        missed = [name for name, row in small_rows.items() if row["ratio"][way] > 1.5]
        lines += [f"- Against {way}: " + (f"missed on {', '.join(missed)}." if missed else "met.")]
    lines += [""]
    cells = [
        [name, f"{row['seconds']:.1f}", met(row["seconds"], row["bar_seconds"])]
        for name, row in rows.items()
        if "seconds" in row
    ]
    lines += table("problem | seconds | bar", cells) if cells else []
    load = max((row["load"] for row in rows.values()), default=0.0)
    busy = " Other programs ran at the same time, so the times may be too long." if load > 1.5 else ""
    return [*lines, f"The load of the machine was at most {load:.1f} during this part.{busy}", ""]


LINES = {
    "regret": regret_lines,
    "unknown": unknown_lines,
    "several": several_lines,
    "floors": floors_lines,
    "coverage": coverage_lines,
    "speed": speed_lines,
}


def page(record: dict[str, Any]) -> str:
    """The page, from the record."""
    lines = [
        "# OptPess-Mix, measured",
        "",
        "Written by `make mixing`, from `experiments/record/mixing.json`; "
        "`python experiments/mixing.py --only regret` repeats one part. Every deployed mixture "
        "was judged exactly "
        f"against the true model. Seed {SEED}.",
        "",
    ]
    for part, made_lines in LINES.items():
        if record.get(part):
            lines += made_lines(record[part])
            source = record.get("provenance", {}).get(part)
            if source:
                lines += [f"Commit {source['commit']}, {source['date']}.", ""]
        if part == "floors" and record.get("regret"):
            lines += ["## Curves", ""]
            lines += [
                "OptPess-Mix is told that the problem is stationary, S-OPS is not; on the pairs neither "
                "is told anything. Lines are medians over replicates, bands go from the least to the "
                "greatest; `python experiments/mixing.py --draw` draws them from the record.",
                "",
            ]
            for name, alt in IMAGES.items():
                lines += [f"![{alt}](figures/{name}.svg)", ""]
    return "\n".join(lines).rstrip() + "\n"
