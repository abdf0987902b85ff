"""A figure with its title, caption and a text in its place, and its form as SVG."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optpess import storage
from optpess.checks import check_path
from optpess.exceptions import InvalidInputError
from optpess.plot.style import INK, drawing
from optpess.plot.svg import compact

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Picture"]

_SUFFIXES = (".pdf", ".png", ".svg")
_DOTS_PER_INCH = 150
# Tags, in which nothing is shown as text; identifiers and references to them, up to the name.
_TAG = re.compile(r"<[a-zA-Z][^>]*>")
_IDENTIFIER = re.compile(r'\bid="|href="#|url\(#')


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure that explains itself.

    Example:
        >>> import optpess as op
        >>> from optpess.plot import pictures
        >>> pair = op.zoo.problem("pair")
        >>> learner = op.AlwaysBaseline(shape=pair.model.shape, initial=pair.model.initial,
        ...                             num_episodes=100, baseline=pair.baseline)
        >>> run = op.simulate(pair.model, learner)
        >>> [picture.name for picture in pictures({"safe": run})]
        ['cost', 'reward', 'gain', 'regret', 'violations']
    """

    name: str
    """A short name of letters and hyphens, such as ``"cost"``."""
    title: str
    """What is shown, in a few words."""
    caption: str
    """What lines and bands are."""
    alt: str
    """What can be seen, for those who cannot see it."""
    figure: Figure
    """The figure."""

    def __post_init__(self) -> None:
        # The layout of a second drawing starts from that of the first: it is made here, once.
        with _any_character():
            self.figure.draw_without_rendering()
        self.figure.set_layout_engine("none")

    def svg(self, *, background: str | None = None, prefix: str = "") -> str:
        """The figure as an ``<svg>`` element, the same text each time; texts stay texts.

        Without a background it is transparent, and texts and axes have the colour of the text around
        (``currentColor``), so that it can stand in a light or a dark page. Identifiers start with the
        prefix and the name of the picture: several pictures can stand in one page.

        Args:
            background: a colour such as ``"white"``, for a file that stands alone.
            prefix: letters and hyphens that tell apart pictures of the same name in a page.
        """
        text = self._drawn("svg", background).decode()
        text = compact(text[text.index("<svg") :])

        def tag(found: re.Match[str]) -> str:
            named = _IDENTIFIER.sub(rf"\g<0>{prefix}{self.name}-", found[0])
            return named if background is not None else named.replace(INK, "currentColor")

        facts = f'<svg role="img" aria-label="{escape(self.alt)}" '
        return _TAG.sub(tag, text).replace("<svg ", facts, 1)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the figure to a file by its suffix: ``.svg``, ``.pdf`` or ``.png``, on white. If
        writing fails, an old file stays as it was.
        """
        suffix = Path(check_path(path)).suffix.lower()
        if suffix not in _SUFFIXES:
            raise InvalidInputError(
                f"path is {str(path)!r}; its suffix must be one of {', '.join(_SUFFIXES)}"
            )
        if suffix == ".svg":
            head = '<?xml version="1.0" encoding="utf-8"?>\n'
            made = (head + self.svg(background="white")).encode()
        else:
            made = self._drawn(suffix[1:], "white")
        with storage.replacing(path) as file:
            file.write(made)

    def _drawn(self, form: str, background: str | None) -> bytes:
        """The bytes of a file without a date."""
        from matplotlib import rcParams

        dates: dict[str, dict[str, Any]] = {
            "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
            "pdf": {"CreationDate": None, "ModDate": None, "Creator": None, "Producer": None},
            "png": {"Software": None},
        }
        stream = io.BytesIO()
        with drawing("a picture"), _any_character():
            rcParams["svg.fonttype"] = "none"
            rcParams["svg.hashsalt"] = self.name
            self.figure.savefig(
                stream,
                format=form,
                dpi=_DOTS_PER_INCH,
                facecolor=background or "none",
                metadata=dates[form],
            )
        return stream.getvalue()


@contextmanager
def _any_character() -> Iterator[None]:
    """Does not warn of characters that our font lacks: whoever shows the SVG takes another for them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield
