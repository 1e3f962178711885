"""Charts as inline SVG: lines and bars with axes, nothing else."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape

LEFT, RIGHT, TOP, BOTTOM = 62, 12, 26, 40


def nice_ticks(top: float, wanted: int = 5) -> list[float]:
    """Round numbers from 0 to at least `top`."""
    if top <= 0:
        return [0, 1]
    raw = top / wanted
    unit = 10 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= raw)
    return [step * i for i in range(math.ceil(top / step - 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0 ** power for power in range(first, max(last, first + 1) + 1)]


def short(value: float) -> str:
    for unit, factor in (("M", 1e6), ("K", 1e3)):
        if abs(value) >= factor:
            return f"{value / factor:g}{unit}"
    return f"{value:.3g}"


@dataclass
class Axis:
    """Values to pixels, linear from 0 or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        if self.log:
            share = ((math.log10(max(value, self.low)) - math.log10(self.low))
                     / (math.log10(self.high) - math.log10(self.low)))
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


@dataclass
class Chart:
    """Collects shapes; str() is the <svg> element."""

    title: str
    y_title: str
    x_title: str = ""
    width: int = 460
    height: int = 270
    shapes: list[str] = field(default_factory=list)

    @property
    def bottom(self) -> float:
        return self.height - BOTTOM

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "middle",
             turn: float = 0) -> None:
        turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
        self.shapes.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
                           f' class="{kind}"{turned}>{escape(words)}</text>')

    def line(self, points: list[tuple[float, float]], color: str, width: float = 1.8,
             note: str = "") -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.shapes.append(f'<polyline points="{path}" fill="none" stroke="{color}"'
                           f' stroke-width="{width}" stroke-linejoin="round">'
                           f'<title>{escape(note)}</title></polyline>')

    def dot(self, x: float, y: float, color: str, note: str) -> None:
        self.shapes.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}">'
                           f'<title>{escape(note)}</title></circle>')

    def box(self, x: float, y: float, width: float, height: float, color: str,
            note: str) -> None:
        self.shapes.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}"'
                           f' height="{max(height, 0):.1f}" fill="{color}">'
                           f'<title>{escape(note)}</title></rect>')

    def y_axis(self, top: float, log_from: float = 0) -> Axis:
        if log_from:
            ticks = log_ticks(log_from, top)
        else:
            ticks = nice_ticks(top)
        axis = Axis(ticks[0], ticks[-1], self.bottom, TOP, bool(log_from))
        for tick in ticks:
            y = axis.at(tick)
            self.shapes.append(f'<line x1="{LEFT}" x2="{self.width - RIGHT}" y1="{y:.1f}"'
                               f' y2="{y:.1f}" class="grid"/>')
            self.text(LEFT - 6, y + 4, short(tick), "tick", "end")
        self.text(14, (TOP + self.bottom) / 2, self.y_title, "axis", turn=-90)
        return axis

    def x_axis(self, top: float) -> Axis:
        ticks = nice_ticks(top, 6)
        axis = Axis(0, top if top > 0 else 1, LEFT, self.width - RIGHT)
        for tick in ticks:
            if tick <= axis.high:
                self.text(axis.at(tick), self.bottom + 15, short(tick), "tick")
        self.text((LEFT + self.width - RIGHT) / 2, self.height - 6, self.x_title, "axis")
        return axis

    def x_slots(self, names: list[str]) -> tuple[list[float], float]:
        """Centres of equal slots with names below, and their width."""
        width = (self.width - RIGHT - LEFT) / max(1, len(names))
        centres = [LEFT + width * (i + 0.5) for i in range(len(names))]
        turned = -35 if any(len(name) * 6.2 > width for name in names) else 0
        for centre, name in zip(centres, names):
            self.text(centre, self.bottom + 15, name, "tick", "end" if turned else "middle",
                      turned)
        self.text((LEFT + self.width - RIGHT) / 2, self.height - 6, self.x_title, "axis")
        return centres, width

    def __str__(self) -> str:
        self.text(LEFT, 15, self.title, "title", "start")
        return (f'<svg viewBox="0 0 {self.width} {self.height}" width="{self.width}"'
                f' height="{self.height}" role="img" aria-label="{escape(self.title)}">'
                + "".join(self.shapes) + "</svg>")
