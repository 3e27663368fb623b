"""The chart of a run as SVG: one panel per workload, one bar per system, longest first; plain text, no library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from benchmarks.contest import APPEND_MANY, APPEND_ONE, DRAIN, LATENCY
from benchmarks.results import Results, median

WIDTH: Final = 920
LABEL_WIDTH: Final = 230
VALUE_WIDTH: Final = 110
BAR_HEIGHT: Final = 16
ROW_HEIGHT: Final = 22
PANEL_GAP: Final = 26
TITLE_HEIGHT: Final = 30
MARGIN: Final = 16
BASELINE: Final = 12
LEGEND_PLACES: Final = (0, 350, 530)

PANELS: Final = (
    (APPEND_ONE, "Append, 1 per transaction: events per second", False),
    (APPEND_MANY, "Append, 100 per transaction: events per second", False),
    (DRAIN, "Drain, one process: deliveries per second", False),
    (LATENCY, "Append to handler at 50 per second: p50 in milliseconds (shorter is better)", True),
)
OURS: Final = "#3f51b5"
RIVAL: Final = "#90a4ae"
LIMIT: Final = "#cfd8dc"


@dataclass(frozen=True, slots=True)
class Bar:
    """One system in one panel."""

    name: str
    value: float
    colour: str


def chart(results: Results) -> str:
    """The SVG document."""
    panels = [(title, found) for workload, title, slow in PANELS if (found := _bars(results, workload, slow=slow))]
    body: list[str] = []
    top = MARGIN
    for title, bars in panels:
        body += _panel(title, bars, top)
        top += TITLE_HEIGHT + ROW_HEIGHT * len(bars) + PANEL_GAP
    height = top - PANEL_GAP + MARGIN + ROW_HEIGHT
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"',
            f'viewBox="0 0 {WIDTH} {height}" role="img" font-family="system-ui, sans-serif" font-size="13">',
            "<title>Appends, drains and latency of every measured system</title>",
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            *body,
            *_legend(height - MARGIN),
            "</svg>",
            "",
        ]
    )


def _bars(results: Results, workload: str, *, slow: bool) -> list[Bar]:
    bars: list[Bar] = []
    for one in results.systems:
        value = median(one, workload)
        if value is not None:
            is_ours = one.entrant.target.startswith("seapost")
            bars.append(Bar(one.entrant.name, value, OURS if is_ours else RIVAL if one.entrant.is_rival else LIMIT))
    return sorted(bars, key=lambda bar: bar.value, reverse=not slow)


def _panel(title: str, bars: Sequence[Bar], top: float) -> list[str]:
    longest = max(bar.value for bar in bars)
    room = WIDTH - 2 * MARGIN - LABEL_WIDTH - VALUE_WIDTH
    lines = [f'<text x="{MARGIN}" y="{top + BASELINE}" font-weight="600" fill="#212121">{escape(title)}</text>']
    for place, bar in enumerate(bars):
        y = top + TITLE_HEIGHT + place * ROW_HEIGHT
        length = max(1.0, room * bar.value / longest)
        left = MARGIN + LABEL_WIDTH
        text = f"{bar.value:,.0f}" if bar.value >= 100 else f"{bar.value:.1f}"  # noqa: PLR2004 - width of a number
        lines += [
            f'<text x="{left - 8}" y="{y + BASELINE}" text-anchor="end" fill="#424242">{escape(bar.name)}</text>',
            f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{BAR_HEIGHT}" rx="2" fill="{bar.colour}"/>',
            f'<text x="{left + length + 6:.1f}" y="{y + BASELINE}" fill="#424242">{text}</text>',
        ]
    return lines


def _legend(y: float) -> list[str]:
    lines: list[str] = []
    for place, (text, colour) in enumerate(
        (
            ("Seapost, with receipts and facts per destination", OURS),
            ("rivals, without them", RIVAL),
            ("raw SQL limit", LIMIT),
        )
    ):
        x = MARGIN + LEGEND_PLACES[place]
        lines += [
            f'<rect x="{x}" y="{y - 11}" width="12" height="12" rx="2" fill="{colour}"/>',
            f'<text x="{x + 18}" y="{y}" fill="#424242">{text}</text>',
        ]
    return lines
