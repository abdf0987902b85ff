"""Pictures in a page, as inline SVG."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from optpess.plot import Picture
from optpess.report.page import scrolling

__all__ = ["gallery"]

_TAG = re.compile(r"<[^>]*>")
# Names of formats, which a file of SVG needs and a page does not; they look like addresses.
_FORMAT = re.compile(r"\sxmlns(?::\w+)?=\"[^\"]*\"")
# A size in points; the page gives pictures its own width.
_SIZE = re.compile(r'\s(?:width|height)="[^"]*"')
_WIDEST_IN_A_COLUMN = 7.0  # inches; broader pictures take the width of the page


def gallery(pictures: Iterable[Picture], prefix: str) -> str:
    """Pictures with their captions; their ids start with the prefix. Broad ones scroll on a phone."""
    return f'<div class="gallery">{"".join(_figure(picture, prefix) for picture in pictures)}</div>'


def _figure(picture: Picture, prefix: str) -> str:
    drawn = _inline(picture, prefix)
    caption = f"<figcaption>{escape(picture.caption)}</figcaption>"
    if picture.figure.get_figwidth() <= _WIDEST_IN_A_COLUMN:
        return f"<figure>{drawn}{caption}</figure>"
    return f'<figure class="broad">{scrolling(drawn, picture.title)}{caption}</figure>'


def _inline(picture: Picture, prefix: str) -> str:
    """The picture as an element of a page, with a title. Texts in it stay as they are."""
    made = _TAG.sub(lambda tag: _FORMAT.sub("", tag[0]), picture.svg(prefix=prefix))
    opening, rest = made.split(">", 1)
    return f"{_SIZE.sub('', opening)}><title>{escape(picture.title)}</title>{rest}"
