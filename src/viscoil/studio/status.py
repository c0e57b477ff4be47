"""What is always visible: how large, how fast, on what; and when something is wrong, what."""

import html
from dataclasses import dataclass, field
from typing import Any

BADGES = {  # state -> what the page says, colour
    "empty": ("no scene", "#8b949e"),
    "building": ("building the scene", "#d29922"),
    "compiling": ("first step: preparing kernels", "#d29922"),
    "running": ("running", "#3fb950"),
    "paused": ("paused", "#58a6ff"),
    "failed": ("stopped by an error", "#f85149"),
    "ended": ("its process ended", "#f85149"),
}


@dataclass
class Status:
    """A snapshot of the studio."""

    state: str = "empty"  # see BADGES
    device: str = ""
    title: str = ""
    time: float = 0.0  # simulated [s]
    frame: int = 0
    step: int = 0
    particles: int = 0
    steps_per_second: float = 0.0
    frames_per_second: float = 0.0
    speed: float = 0.0  # simulated seconds per second
    updates: int = 0  # frames shown since the start
    meshes: int = 0  # surfaces shown since the start
    metrics: dict[str, Any] = field(default_factory=dict)  # of the last finished frame
    problem: str = ""
    notes: tuple[str, ...] = ()
    recording: float | None = None  # simulated seconds recorded; None: not recording
    keeping: bool = False  # frames are being written to a run folder
    scenes: int = 0  # simulations built since the start
    saved: tuple[str, ...] = ()  # files and folders written

    def html(self) -> str:
        """The block at the top of the panel."""
        word, colour = BADGES.get(self.state, (self.state, "#8b949e"))
        busy = ' class="vs-busy"' if self.state in ("building", "compiling") else ""
        cells = [
            (f"{self.particles:,}", "particles"),
            (f"{self.time:.3f} s", f"frame {self.frame}"),
            (_rate(self.steps_per_second), "steps/s"),
            (_rate(self.frames_per_second), "frames/s"),
            (f"{self.speed:.2g}×" if self.speed else "–", "of real time"),
            (html.escape(self.device.split(",")[0] or "–"), html.escape(self.device.partition(", ")[2] or "device")),
        ]
        grid = "".join(f"<div><b>{value}</b><span>{name}</span></div>" for value, name in cells)
        record = ""
        if self.recording is not None:
            record = f'<span class="vs-rec">● {self.recording:.2f} s recorded</span>'
        if self.keeping:
            record += ' <span class="vs-rec">● writing frames</span>'
        return (
            f'<div class="vs-status"><div class="vs-head"><span class="vs-title">{html.escape(self.title or "viscoil")}'
            f'</span><span{busy} style="color:{colour}">{word}</span></div>'
            f'<div class="vs-grid">{grid}</div>{record}</div>'
        )


def _rate(value: float) -> str:
    if not value:
        return "–"
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}" if value < 10 else f"{value:.1f}"


def box(text: str, kind: str) -> str:
    """A message: "problem" or "note"."""
    lines = "<br>".join(html.escape(line) for line in text.splitlines())
    return f'<div class="vs-box vs-{kind}">{lines}</div>' if text else ""


STYLE = """<style>
.vs-status{padding:0 .75em .5em .75em;font-size:.9em;line-height:1.35}
.vs-head{display:flex;justify-content:space-between;align-items:baseline;margin-bottom:.5em}
.vs-title{font-weight:600;font-size:1.1em}
.vs-grid{display:grid;grid-template-columns:repeat(3,1fr);gap:.45em .6em}
.vs-grid div{display:flex;flex-direction:column;overflow:hidden}
.vs-grid b{font-weight:600;font-variant-numeric:tabular-nums;white-space:nowrap}
.vs-grid span{opacity:.6;font-size:.82em;white-space:nowrap}
.vs-rec{color:#f85149;font-size:.9em;font-variant-numeric:tabular-nums}
.vs-busy{animation:vs-pulse 1.2s ease-in-out infinite}
@keyframes vs-pulse{50%{opacity:.35}}
.vs-box{margin:0 .75em .6em .75em;padding:.5em .65em;border-radius:5px;font-size:.85em;line-height:1.35;
overflow-wrap:anywhere;white-space:pre-wrap;max-height:14em;overflow-y:auto}
.vs-problem{background:rgba(248,81,73,.13);border-left:3px solid #f85149}
.vs-note{background:rgba(210,153,34,.10);border-left:3px solid #d29922}
.vs-text{padding:0 .75em .5em .75em;font-size:.85em;opacity:.75;line-height:1.4}
.vs-swatch{padding:0 .75em .55em .75em;font-size:.82em;opacity:.85;line-height:1.3;display:flex;align-items:center;gap:.5em}
.vs-dot{width:1em;height:1em;border-radius:50%;flex:none;border:1px solid rgba(255,255,255,.35)}
.vs-saved{padding:.2em .75em .5em .75em;font-size:.8em;line-height:1.5;overflow-wrap:anywhere}
.mantine-Slider-root + .mantine-NumberInput-root{display:none}
.mantine-Flex-root:has(> div > p > label):has(.mantine-Slider-root){flex-direction:column;align-items:stretch !important}
.mantine-Flex-root:has(.mantine-Slider-root) > div:has(> p > label){width:100% !important}
.mantine-Flex-root:has(.mantine-Slider-root) > div > p{letter-spacing:0 !important}
.mantine-Flex-root > div:has(> p > label:empty){display:none}
</style>"""
