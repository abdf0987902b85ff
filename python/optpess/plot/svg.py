"""Makes the SVG that matplotlib writes small: short paths, no groups or styles that change nothing."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from optpess.plot.style import FONT

__all__ = ["compact"]

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_LINK = f"{{{_XLINK}}}href"
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_POINT = re.compile(r"(-?[\d.]+) (-?[\d.]+)")
_NUMBER = re.compile(r"-?[\d.]+")
_LINE = re.compile(r"M[^Mlz]*l[^Mlz]*")  # of two points
_STRAIGHT = re.compile(r"[MLz\s\d.-]*")
_REFERENCE = re.compile(r"#([\w-]+)")
_NO_TURN = re.compile(r"rotate\(-?0 .*\)")
_NEAR = 0.05  # in points
# Where our font is missing, a similar one, and no serifs.
_FONT = f"'{FONT}', Verdana, sans-serif"


def compact(text: str) -> str:
    """The same image in fewer bytes. Lines are moved by an eighth of a point at most."""
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    root = ElementTree.fromstring(text)
    for rule in [each for each in root if each.find(_tag("style")) is not None]:
        root.remove(rule)  # of matplotlib, for all elements of the page; below it is inherited
    _number_names(root)
    styles = {f"#{each.get('id')}": each.get("style", "") for each in root.iter() if "id" in each.attrib}
    for element in root.iter():
        _shorten(element, styles)
    _unwrap(root)
    named = {f"#{each.get('id')}": each for each in root.iter(_tag("path")) if "id" in each.attrib}
    _join(root, {name: each for name, each in named.items() if _LINE.fullmatch(each.get("d", ""))})
    root.attrib |= {"font-family": _FONT, "stroke-linejoin": "round"}
    return ElementTree.tostring(root, encoding="unicode")


def _number_names(root: Element) -> None:
    """Gives short names to the elements that others refer to, in their order, and none to the rest.
    Matplotlib's names are hashes of places with all digits, and change with the last one.
    """
    values = (value for element in root.iter() for key, value in element.items() if key != "d")
    used = set(_REFERENCE.findall(" ".join(values)))
    named = [element.get("id", "") for element in root.iter() if element.get("id") in used]
    numbers = {name: f"n{number}" for number, name in enumerate(named)}

    def numbered(reference: re.Match[str]) -> str:
        return "#" + numbers.get(reference[1], reference[1])  # a colour stays

    for element in root.iter():
        own = numbers.get(element.attrib.pop("id", ""))
        element.attrib |= {
            key: _REFERENCE.sub(numbered, value) for key, value in element.items() if key != "d"
        }
        element.attrib |= {} if own is None else {"id": own}


def _shorten(element: Element, styles: dict[str, str]) -> None:
    """Leaves out of one element what nothing needs."""
    if _NO_TURN.fullmatch(element.get("transform", "")):
        del element.attrib["transform"]
    for name, value in element.items():
        element.set(name, _short_path(value) if name == "d" else _LONG_NUMBER.sub(_two_decimals, value))
    if "style" in element.attrib:
        # A copy has the style of its original, and all texts have the same font.
        known = styles.get(element.get(_LINK, ""), "").split("; ")
        own = [each for each in element.attrib.pop("style").split("; ") if each not in known]
        kept = [each.replace(": ", ":") for each in own if not each.startswith("font-family")]
        element.attrib |= {"style": ";".join(kept)} if kept else {}
    if element.tag != _tag("text") and not (element.text or "").strip():
        element.text = None
    element.tail = None


def _short_path(path: str) -> str:
    """Straight lines with few points, each as its distance from the one before. Paths with curves are
    small, and stay as they are.
    """
    if not _STRAIGHT.fullmatch(path):
        return _LONG_NUMBER.sub(_two_decimals, " ".join(path.split()))
    made = []
    for part in path.split("M")[1:]:
        points = [complex(float(x), float(y)) for x, y in _POINT.findall(part)]
        start, *others = (_tenths(point) for point in _without_straight_ones(points))
        made.append(f"M{_pair(start)}")
        before = start
        for point in others:
            made.append(
                f"l{_pair(point - before)}"
            )  # differences of rounded points: errors do not add up
            before = point
        made.append("z" * ("z" in part))
    return "".join(made)


def _without_straight_ones(points: list[complex]) -> list[complex]:
    """Points without those that lie within _NEAR of the line between their neighbours that are kept."""
    kept = points[:1]
    skipped: list[complex] = []
    for here, after in pairwise(points[1:]):
        skipped.append(here)
        if any(_distance(point, kept[-1], after) > _NEAR for point in skipped):
            kept.append(here)
            skipped = []
    return [*kept, *points[1:][-1:]]


def _distance(point: complex, first: complex, last: complex) -> float:
    """From a point to the line between two others."""
    along = last - first
    if not along:
        return abs(point - first)
    place = ((point - first) * along.conjugate()).real / abs(along) ** 2
    return abs(point - first - min(max(place, 0.0), 1.0) * along)


def _tenths(point: complex) -> complex:
    return complex(round(10 * point.real), round(10 * point.imag))


def _pair(tenths: complex) -> str:
    """Two numbers; a minus sign parts them too."""
    x, y = (
        f"{number / 10:g}".replace("0.", ".", abs(number) < 10) for number in (tenths.real, tenths.imag)
    )
    return f"{x}{y}" if y.startswith("-") else f"{x} {y}"


def _two_decimals(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}"


def _unwrap(element: Element) -> None:
    """Puts what stands in groups without attributes into their place."""
    children: list[Element] = []
    for child in element:
        _unwrap(child)
        children += list(child) if child.tag == _tag("g") and not child.attrib else [child]
    element[:] = children


def _join(element: Element, lines: dict[str, Element]) -> None:
    """Joins lines that look the same with nothing but copies and texts between them, and the copies of
    each of ``lines``: all ticks are one path, in the place of the first.
    """
    last: Element | None = None
    copies: dict[tuple[str, str], Element] = {}
    kept = []
    for child in element:
        _join(child, lines)
        link, style = child.get(_LINK, ""), child.get("style", "")
        if link in lines:
            moved = _moved(lines[link].get("d", ""), child)
            if (link, style) in copies:
                _append(copies[link, style], moved)
                continue
            both = ";".join(filter(None, (style, lines[link].get("style", ""))))
            copies[link, style] = Element(_tag("path"), {"d": moved, "style": both})
            kept.append(copies[link, style])
            continue
        if last is not None and _look(child) == _look(last):
            _append(last, child.get("d", ""))
            continue
        kept.append(child)
        if child.tag not in map(_tag, ("use", "text", "defs")):
            last = child if _is_line(child) else None
    element[:] = kept


def _append(element: Element, path: str) -> None:
    element.set("d", element.get("d", "") + path)


def _moved(line: str, copy: Element) -> str:
    """A line of two points, where the copy has it."""
    numbers = _NUMBER.findall(line)
    start = complex(*map(float, numbers[:2])) + complex(*(float(copy.get(name, 0)) for name in "xy"))
    return f"M{_pair(_tenths(start))}{line[line.index('l') :]}"


def _is_line(element: Element) -> bool:
    is_path = element.tag == _tag("path") and "id" not in element.attrib
    return is_path and "fill:none" in element.get("style", "")


def _look(element: Element) -> tuple[str, dict[str, str]]:
    """What two lines must have in common to be joined."""
    return element.tag, {name: value for name, value in element.items() if name != "d"}


def _tag(name: str) -> str:
    return f"{{{_SVG}}}{name}"
