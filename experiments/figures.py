"""Writes the figures of the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optpess.plot import Picture
from pages import FIGURES

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure


def save_figure(figure: Figure, name: str, folder: Path = FIGURES) -> None:
    """Writes ``name.svg``. What it shows is said by the page; the short name keeps the file small."""
    folder.mkdir(parents=True, exist_ok=True)
    Picture("f", name, caption="", alt="", figure=figure).save(folder / f"{name}.svg")
