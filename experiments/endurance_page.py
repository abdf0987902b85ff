"""The tables of docs/interrupts-and-checkpoints.md, from the records of four experiments."""

from __future__ import annotations

import json
from typing import Any

from pages import DOCS, RECORD, replace_tables

PAGE = DOCS / "interrupts-and-checkpoints.md"


def write() -> None:
    """Writes the tables of all records that are there."""
    parts = []
    for name, made in (
        ("interrupts", interrupts),
        ("kill", kill),
        ("study-on-dask", study),
        ("endurance", endurance),
    ):
        path = RECORD / f"{name}.json"
        if path.exists():
            parts.append(made(json.loads(path.read_text(encoding="utf-8"))))
    replace_tables(PAGE, "\n\n".join(parts))


def table(header: list[str], rows: list[list[Any]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def made_on(record: dict[str, Any]) -> str:
    """When and from what a record was made."""
    found = record["provenance"]
    return f"{found['date']}, commit {found['commit']}"


def interrupts(record: dict[str, Any]) -> str:
    """How soon calls stop."""
    rows = [
        [
            each["call"],
            each["where"],
            each["signal"],
            each["times"],
            "-" if each["median"] is None else f"{each['median']:.3f}",
            "-" if each["worst"] is None else f"{each['worst']:.3f}",
            ", ".join(each["ended"]),
            each["threads left"],
        ]
        for each in record["cases"]
    ]
    header = ["call", "where", "signal", "times", "median s", "worst s", "ended by", "threads left"]
    return (
        "### How soon a call stops\n\n"
        f"`make interrupts` ({made_on(record)}). Seconds from sending a signal to the next line of "
        "Python; of the command line, to the end of the process. The machine has two cores, which "
        f"several other programs used.\n\n{table(header, rows)}"
    )


def kill(record: dict[str, Any]) -> str:
    """Runs that were killed."""
    rows = [
        [
            each["run"],
            each["runs"],
            each["kills"],
            each["while a checkpoint was written"],
            each["records that differ"],
        ]
        for each in record["runs"]
    ]
    header = ["run", "runs", "kills", "while a checkpoint was written", "records that differ"]
    return (
        "### kill -9 at random moments\n\n"
        f"`make kill` ({made_on(record)}). Each process is killed after a random time, the next one "
        "goes on from the file, until the run has come to its end; then all that it recorded is "
        f"compared, to the bit, with a run that was never stopped.\n\n{table(header, rows)}"
    )


def study(record: dict[str, Any]) -> str:
    """A study whose workers were killed."""
    rows = [
        [
            name,
            each["cells"],
            each["missing"],
            each["executed"],
            each.get("workers killed", 0),
            "yes" if each["agrees"] else "no",
            each["seconds"],
        ]
        for name, each in record.items()
        if isinstance(each, dict) and "cells" in each
    ]
    header = ["study", "cells", "missing", "executed", "workers killed", "the same bits", "seconds"]
    return f"### A study whose workers are killed\n\n`make study-on-dask`.\n\n{table(header, rows)}"


def endurance(record: dict[str, Any]) -> str:
    """Threads and memory."""
    threads = record["threads"]
    rows = [list(each.values()) for each in record["memory"]]
    return (
        "### Threads and memory\n\n"
        f"`make endurance` ({made_on(record)}). {threads['simulations']} simulations of "
        f"{threads['episodes each']:,} episodes, by five learners on two problems, in as many threads "
        f"of one process: {threads['the same to the bit']} of them have the bits of the same ones "
        "one by one. A run of OptPess-PrimalDual, whose memory is looked at four times a second:\n\n"
        f"{table(list(record['memory'][0]), rows)}"
    )


if __name__ == "__main__":
    write()
