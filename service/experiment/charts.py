"""Small pictures as inline SVG, drawn here so that the report needs nothing else.

Colours are CSS variables of the page, so that pictures follow its light and dark theme.
"""

from collections.abc import Mapping, Sequence
from html import escape
from math import isnan

WIDTH, HEIGHT = 460, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 12, 34
SERIES = ("var(--s0)", "var(--s1)", "var(--s2)", "var(--s3)", "var(--s4)", "var(--s5)", "var(--s6)")


def bars(names: Sequence[str], values: Sequence[float], *, title: str, line: float | None = None) -> str:
    """Return a bar for each name; ``line`` is a dashed level to compare with."""
    top = max([*values, line or 0.0, 1e-9])
    step = _plot_width() / max(len(values), 1)
    parts = [_axis(top, title)]
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        x, height = _LEFT + place * step, value / top * _plot_height()
        parts.append(
            f'<rect x="{x + step * 0.12:.1f}" y="{_TOP + _plot_height() - height:.1f}" width="{step * 0.76:.1f}"'
            f' height="{height:.1f}" fill="var(--s0)"><title>{escape(name)}: {_number(value)}</title></rect>'
            + _text(x + step / 2, HEIGHT - _BOTTOM + 14, name, anchor="middle")
        )
    if line is not None:
        y = _TOP + _plot_height() * (1 - line / top)
        parts.append(f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="level"/>')
    return _svg(parts, title)


def lines(names: Sequence[str], series: Mapping[str, Sequence[float]], *, title: str) -> str:
    """Return one line for each series over the same names."""
    top = max([value for values in series.values() for value in values if not isnan(value)] + [1e-9])
    step = _plot_width() / max(len(names) - 1, 1)
    parts = [_axis(top, title)]
    for place, name in enumerate(names):
        parts.append(_text(_LEFT + place * step, HEIGHT - _BOTTOM + 14, name, anchor="middle"))
    for place, (name, values) in enumerate(series.items()):
        points = [(_LEFT + i * step, _TOP + _plot_height() * (1 - v / top)) for i, v in enumerate(values)]
        parts.append(_path(points, SERIES[place % len(SERIES)], name))
    return _svg(parts, title) + _legend(list(series))


def curve(series: Mapping[str, Sequence[tuple[float, float]]], *, title: str) -> str:
    """Return points in the unit square and the diagonal they should lie on."""
    corners = [(_LEFT, _TOP + _plot_height()), (WIDTH - _RIGHT, _TOP)]
    parts = [_axis(1.0, title), _path(corners, "var(--muted)", "perfect", dashed=True)]
    for tick in (0.0, 0.5, 1.0):
        x = _LEFT + tick * _plot_width()
        parts.append(_text(x, HEIGHT - _BOTTOM + 14, f"{tick:g}", anchor="middle"))
    for place, (name, points) in enumerate(series.items()):
        placed = [(_LEFT + x * _plot_width(), _TOP + _plot_height() * (1 - y)) for x, y in points]
        parts.append(_path(placed, SERIES[place % len(SERIES)], name))
    return _svg(parts, title) + _legend(list(series))


def heat(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]], *, title: str) -> str:
    """Return a table of squares, darker for more, each with its number for who points at it."""
    seen = [value for row in values for value in row if not isnan(value)]
    low, high = (min(seen), max(seen)) if seen else (0.0, 1.0)
    cell = min(_plot_width() / max(len(columns), 1), 26.0)
    parts = []
    for y, (row, entries) in enumerate(zip(rows, values, strict=True)):
        parts.append(_text(_LEFT - 4, _TOP + (y + 0.7) * cell, row, anchor="end"))
        for x, (column, value) in enumerate(zip(columns, entries, strict=True)):
            share = 0.0 if isnan(value) or high == low else (value - low) / (high - low)
            parts.append(
                f'<rect x="{_LEFT + x * cell:.1f}" y="{_TOP + y * cell:.1f}" width="{cell - 1:.1f}"'
                f' height="{cell - 1:.1f}" fill="var(--s0)" fill-opacity="{0.06 + 0.94 * share:.2f}">'
                f"<title>{escape(row)} after {escape(column)}: {_number(value)}</title></rect>"
            )
    height = _TOP + len(rows) * cell + 18
    for x, column in enumerate(columns):
        parts.append(_text(_LEFT + (x + 0.5) * cell, height - 6, column, anchor="middle"))
    return _svg(parts, title, height=height)


def _plot_width() -> float:
    return WIDTH - _LEFT - _RIGHT


def _plot_height() -> float:
    return HEIGHT - _TOP - _BOTTOM


def _number(value: float) -> str:
    return "none" if isnan(value) else f"{value:.3g}"


def _text(x: float, y: float, text: str, *, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _axis(top: float, title: str) -> str:
    ticks = []
    for share in (0.0, 0.5, 1.0):
        y = _TOP + _plot_height() * (1 - share)
        ticks.append(f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        ticks.append(_text(_LEFT - 5, y + 4, _tick(share * top), anchor="end"))
    return f"<title>{escape(title)}</title>" + "".join(ticks)


def _path(points: Sequence[tuple[float, float]], colour: str, name: str, *, dashed: bool = False) -> str:
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points if not (isnan(x) or isnan(y)))
    dash = ' stroke-dasharray="4 4"' if dashed else ""
    return (
        f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"{dash}>'
        f"<title>{escape(name)}</title></polyline>"
    )


def _legend(names: Sequence[str]) -> str:
    entries = (
        f'<span><i style="background:{SERIES[place % len(SERIES)]}"></i>{escape(name)}</span>'
        for place, name in enumerate(names)
    )
    return f'<p class="legend">{"".join(entries)}</p>'


def _svg(parts: Sequence[str], title: str, *, height: float = HEIGHT) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}"'
        f' xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def _tick(value: float) -> str:
    """Return three digits, or all of them where an exponent would come: no axis has room for one."""
    short = f"{value:.3g}"
    return f"{value:,.0f}" if "e+" in short else short
