"""The HTML page: its head, its header and its sections. Loads nothing: style and pictures are inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Protocol

from optpess.display import html_table
from optpess.run.origin import versions

__all__ = [
    "Part",
    "box",
    "code",
    "facts",
    "heading",
    "items",
    "page",
    "paragraph",
    "scrolling",
    "wide_table",
]

# Nothing may be loaded and no script may run, whatever the page holds; inline style only.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class Part(Protocol):
    """What the page says about one record, or about runs that can be compared."""

    def title(self) -> str:
        """What it is about, in few words."""
        ...

    def summary(self) -> Sequence[str]:
        """What came of it, the most important sentence first."""
        ...

    def setting(self) -> Sequence[str]:
        """Problem, episodes and seed, each in few words."""
        ...

    def alarms(self) -> Sequence[tuple[str, str]]:
        """(title, text) of what the reader must not miss."""
        ...

    def sections(self, prefix: str, level: int) -> Iterable[tuple[str, str]]:
        """(title, HTML) of each section; ids start with the prefix, headings inside have the level."""
        ...


def page(title: str | None, parts: Sequence[Part]) -> str:
    """The whole page."""
    several = len(parts) > 1
    name = title or "; ".join(dict.fromkeys(part.title() for part in parts))
    body = [f'<header><p class="eyebrow">optpess report</p>{heading(1, name)}']
    body.append(_list_of(parts) if several else _opening(parts[0]))
    body.append("</header><main>")
    for number, part in enumerate(parts, start=1):
        prefix = f"part{number}-"
        if several:
            body.append(f'<article id="part{number}">{heading(2, part.title())}{_opening(part)}')
        body.extend(_sections(part, prefix, 3 if several else 2))
        if several:
            body.append("</article>")
    body.append("</main>")
    return _document(name, "\n".join(body))


def _document(name: str, body: str) -> str:
    style = (files("optpess.report") / "style.css").read_text(encoding="utf-8")
    own = versions()["optpess"]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="optpess {escape(own)}">
<title>{escape(name)}</title>
<style>
{style}</style>
</head>
<body>
{body}
<footer>{paragraph(f"Written by optpess {own}. The same records give the same page.")}</footer>
</body>
</html>
"""


def _list_of(parts: Sequence[Part]) -> str:
    """The parts of the page with their first sentences, as links."""
    lines = (
        f'<li><a href="#part{number}">{escape(part.title())}</a> {escape(part.summary()[0])}</li>'
        for number, part in enumerate(parts, start=1)
    )
    return f'<nav aria-label="Parts of this page"><ol>{"".join(lines)}</ol></nav>'


def _opening(part: Part) -> str:
    """What the reader sees first."""
    first, *rest = part.summary()
    return (
        f'<p class="lead">{escape(first)}</p>'
        + "".join(map(paragraph, rest))
        + "".join(box(title, text) for title, text in part.alarms())
        + f'<ul class="setting">{"".join(f"<li>{escape(fact)}</li>" for fact in part.setting())}</ul>'
    )


def _sections(part: Part, prefix: str, level: int) -> Iterable[str]:
    for number, (title, content) in enumerate(part.sections(prefix, level + 1), start=1):
        name = f"{prefix}section{number}"
        yield f'<section aria-labelledby="{name}">{heading(level, title, name)}{content}</section>'


def heading(level: int, text: str, name: str | None = None) -> str:
    """A heading, with an id if a name is given."""
    place = "" if name is None else f' id="{escape(name)}"'
    return f"<h{level}{place}>{escape(text)}</h{level}>"


def paragraph(text: str, kind: str | None = None) -> str:
    """A paragraph, of a class of the style if a kind is given."""
    opening = "<p>" if kind is None else f'<p class="{kind}">'
    return f"{opening}{escape(text)}</p>"


def box(title: str, text: str) -> str:
    """What the reader must not miss."""
    return (
        f'<div class="alarm" role="note"><p><strong>{escape(title)}.</strong> {escape(text)}</p></div>'
    )


def items(texts: Iterable[str]) -> str:
    """A list."""
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def facts(found: Mapping[str, str]) -> str:
    """Names and values."""
    rows = (f"<div><dt>{escape(name)}</dt><dd>{escape(fact)}</dd></div>" for name, fact in found.items())
    return f'<dl class="facts">{"".join(rows)}</dl>'


def code(text: str, label: str) -> str:
    """Lines of code, which scroll in a box of their own."""
    return (
        f'<pre tabindex="0" role="region" aria-label="{escape(label)}"><code>{escape(text)}</code></pre>'
    )


def wide_table(label: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, which scrolls in a box of its own."""
    return scrolling(html_table(header, rows, most=None), label)


def scrolling(content: str, label: str) -> str:
    """A box whose content scrolls if it is wider, also with the keyboard; the label is its name."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{escape(label)}">{content}</div>'
