"""Growth curves as SVG that stands alone: small panels side by side, both axes logarithmic.

A power of ten has the same length everywhere, so a line that climbs as steeply as the diagonal grows in step with
its axis, and a flat one does not grow at all. Colours follow the reader's light or dark theme.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 300, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 14, 30, 36
_LEGEND = 24
_STYLE = """
text { font: 11px system-ui, sans-serif; fill: #3c4043 }
.title { font-weight: 600; font-size: 12px }
.grid { stroke: #dadce0; stroke-width: 1 }
.s0 { stroke: #1a5fb4; fill: #1a5fb4 } .s1 { stroke: #9a9996; fill: #9a9996 }
.s2 { stroke: #c64600; fill: #c64600 } .s3 { stroke: #26a269; fill: #26a269 }
polyline { stroke-width: 2 } polyline.s1 { stroke-dasharray: 5 4 }
@media (prefers-color-scheme: dark) {
  text { fill: #dadce0 } .grid { stroke: #5f6368 }
  .s0 { stroke: #62a0ea; fill: #62a0ea } .s2 { stroke: #ffbe6f; fill: #ffbe6f }
  .s3 { stroke: #57e389; fill: #57e389 }
}
"""


@dataclass(frozen=True)
class Panel:
    """Several lines over one axis, by what they show."""

    title: str
    lines: Mapping[str, Points]


def picture(name: str, unit: str, panels: Sequence[Panel]) -> str:
    """Return panels that share one scale of ``unit``, so that they can be compared at a glance."""
    values = [y for panel in panels for line in panel.lines.values() for _, y in line]
    low, high = _decades(values)
    width, height = _WIDTH * len(panels), _HEIGHT + _LEGEND
    names = list(dict.fromkeys(line for panel in panels for line in panel.lines))
    body = "".join(
        f'<g transform="translate({place * _WIDTH} 0)">{_panel(panel, unit, low, high, names)}</g>'
        for place, panel in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img"'
        f' aria-label="{escape(name)}"><title>{escape(name)}</title><style>{_STYLE}</style>'
        f"{body}{_legend(names)}</svg>\n"
    )


def _panel(panel: Panel, unit: str, low: int, high: int, names: Sequence[str]) -> str:
    first, last = _decades([x for line in panel.lines.values() for x, _ in line])
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def x(value: float) -> float:
        return _LEFT + (log10(value) - first) / (last - first) * (right - _LEFT)

    def y(value: float) -> float:
        return bottom - (log10(value) - low) / (high - low) * (bottom - _TOP)

    parts = [_text(_LEFT, 18, f"{unit} by {panel.title}", anchor="start", style="title")]
    for power in range(low, high + 1):
        level = y(10.0**power)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{level:.1f}" y2="{level:.1f}"/>')
        parts.append(_text(_LEFT - 5, level + 4, _tick(power), anchor="end"))
    for power in range(first, last + 1):
        place = x(10.0**power)
        parts.append(f'<line class="grid" x1="{place:.1f}" x2="{place:.1f}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(_text(place, bottom + 16, _tick(power), anchor="middle"))
    for name, line in panel.lines.items():
        style = f"s{names.index(name)}"
        drawn = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in line)
        parts.append(f'<polyline class="{style}" style="fill:none" points="{drawn}"/>')
        parts += [
            f'<circle class="{style}" cx="{x(a):.1f}" cy="{y(b):.1f}" r="3">'
            f"<title>{escape(name)}: {b:.3g} {escape(unit)} at {a:,.0f} {escape(panel.title)}</title></circle>"
            for a, b in line
        ]
    return "".join(parts)


def _legend(names: Sequence[str]) -> str:
    parts, at = [], float(_LEFT)
    for place, name in enumerate(names):
        y = _HEIGHT + 8
        parts.append(f'<circle class="s{place}" cx="{at:.0f}" cy="{y - 4}" r="4"/>')
        parts.append(_text(at + 9, y, name, anchor="start"))
        at += 30 + 6.2 * len(name)
    return "".join(parts)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Return the powers of ten between which all values lie, at least one apart."""
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return low, max(high, low + 1)


def _tick(power: int) -> str:
    """Write a power of ten as short as an axis needs it."""
    for least, letter in ((9, "G"), (6, "M"), (4, "k")):
        if power >= least:
            return f"{10 ** (power - least // 3 * 3):g}{letter}"
    return f"{10.0**power:g}"


def _text(x: float, y: float, text: str, *, anchor: str, style: str = "") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
