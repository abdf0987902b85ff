"""Where experiments keep records and pages, and how they write into them."""

from __future__ import annotations

import datetime
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS, RECORD = ROOT / "docs", ROOT / "experiments" / "record"
FIGURES = DOCS / "figures"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


def provenance() -> dict[str, str]:
    """When and from which commit something is made, with a mark if files differ from the commit."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return {"date": today, "commit": commit or "unknown"}


def replace_tables(page: Path, text: str) -> None:
    """Replaces what a page has between its two marks."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
