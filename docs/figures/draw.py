"""Draws the figures of the documentation: ``python docs/figures/draw.py`` writes the SVG files beside it.

Each figure has its own background and follows the reader's colour scheme, so it is legible on light and on dark pages,
here, in the documentation, and in a file viewer. Text is text: it can be searched and read aloud.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

STYLE = """
.card{fill:#ffffff}.box{fill:#eef3fa;stroke:#3f6ea3}.warm{fill:#fdf1e3;stroke:#b3701a}.good{fill:#e8f5ea;stroke:#2f7d3b}
.bad{fill:#fbeaea;stroke:#b03a3a}.plain{fill:none;stroke:#7a8794;stroke-dasharray:5 4}
text{fill:#17212b;font-family:system-ui,'Segoe UI',Helvetica,Arial,sans-serif;font-size:14px}
.small{font-size:12px;fill:#44515e}.bold{font-weight:600}.mono{font-family:ui-monospace,Consolas,monospace;font-size:12.5px}
.line{stroke:#44515e;stroke-width:1.6;fill:none}.head{fill:#44515e}rect,circle{stroke-width:1.4}
@media (prefers-color-scheme:dark){.card{fill:#161b22}.box{fill:#1d2a3b;stroke:#7fb0e6}.warm{fill:#33260f;stroke:#e0a04c}
.good{fill:#15301b;stroke:#6cc07a}.bad{fill:#391a1a;stroke:#e58080}.plain{stroke:#8b97a3}text{fill:#e8edf2}
.small{fill:#b4bfca}.line{stroke:#b4bfca}.head{fill:#b4bfca}}
"""


class Figure:
    """A canvas of ``width`` by ``height`` pixels; ``title`` is what a screen reader says."""

    def __init__(self, width: int, height: int, title: str):
        self.width, self.height, self.title = width, height, title
        self._parts: list[str] = []

    def box(self, x: int, y: int, w: int, h: int, *lines: str, kind: str = "box", mono: bool = False) -> None:
        """A rounded box with centred lines; the first is bold, the others are small."""
        self._parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{w}" height="{h}" rx="7"/>')
        top = y + h / 2 - 9 * (len(lines) - 1) + 5
        for number, line in enumerate(lines):
            style = ("bold" if number == 0 else "small") + (" mono" if mono else "")
            self.text(x + w / 2, top + 18 * number, line, style, "middle")

    def text(self, x: float, y: float, line: str, style: str = "", anchor: str = "start") -> None:
        """One line of text; ``y`` is its baseline."""
        self._parts.append(f'<text class="{style}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(line)}</text>')

    def arrow(self, *points: tuple[int, int]) -> None:
        """A line through the points, with a head at the last."""
        path = "M" + " L".join(f"{x} {y}" for x, y in points)
        self._parts.append(f'<path class="line" d="{path}" marker-end="url(#head)"/>')

    def line(self, *points: tuple[int, int]) -> None:
        """A line without a head."""
        self._parts.append(f'<path class="line" d="M{" L".join(f"{x} {y}" for x, y in points)}"/>')

    def dot(self, x: int, y: int, kind: str = "box") -> None:
        """A commit."""
        self._parts.append(f'<circle class="{kind}" cx="{x}" cy="{y}" r="9"/>')

    def svg(self) -> str:
        """The whole file."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" role="img"><title>{escape(self.title)}</title><style>{STYLE}</style>'
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path class="head" d="M0 0 L10 5 L0 10 z"/></marker></defs>'
            f'<rect class="card" width="{self.width}" height="{self.height}" rx="10"/>'
        )
        return "\n".join([head, *self._parts, "</svg>", ""])


def harness() -> Figure:
    """The four layers between environment and model."""
    f = Figure(760, 330, "A harness: four layers of small files between the environment and the frozen model")
    f.box(15, 120, 105, 90, "environment", "tasks, rules,", "reward")
    f.box(640, 120, 105, 90, "model", "frozen", kind="warm")
    f.box(200, 20, 360, 290, kind="plain")
    f.text(380, 42, "harness (a folder, at a git commit)", "bold", "middle")
    layers = [
        ("contract/*.yaml", "what the model is told about the environment"),
        ("skill/*.yaml", "procedures that fit the task at hand"),
        ("action/*.yaml", "from a reply to an executable action"),
        ("regulation/*.yaml", "loops, stagnation, the budget"),
    ]
    for number, (name, what) in enumerate(layers):
        f.box(220, 58 + 62 * number, 320, 52, name, what, kind="good", mono=False)
    f.arrow((120, 140), (198, 140))
    f.text(160, 132, "observation", "small", "middle")
    f.arrow((562, 140), (638, 140))
    f.text(600, 132, "request", "small", "middle")
    f.arrow((640, 190), (562, 190))
    f.text(600, 208, "reply", "small", "middle")
    f.arrow((198, 190), (122, 190))
    f.text(160, 208, "action", "small", "middle")
    return f


def step() -> Figure:
    """Everything that happens in one step."""
    f = Figure(800, 310, "One step of an episode, from the observation to the record")
    f.box(20, 30, 130, 60, "observation", "and history")
    f.box(190, 30, 150, 60, "shape", "contract, skill", kind="good")
    f.box(380, 30, 150, 60, "constrain", "allowed choices", kind="good")
    f.box(570, 30, 140, 60, "model", "one or more replies", kind="warm")
    f.box(570, 140, 140, 60, "parse", "the protocol's form")
    f.box(380, 140, 150, 60, "repair, rank", "rescue, snap, block", kind="good")
    f.box(190, 140, 150, 60, "regulate", "nudge, force, stop", kind="good")
    f.box(20, 140, 130, 60, "env.step", "only if valid")
    f.box(190, 240, 520, 50, "record", "request, replies, action, result, who fired; the reward stays with the loop")
    f.arrow((150, 60), (188, 60))
    f.arrow((340, 60), (378, 60))
    f.arrow((530, 60), (568, 60))
    f.arrow((640, 90), (640, 138))
    f.arrow((570, 170), (532, 170))
    f.arrow((380, 170), (342, 170))
    f.arrow((190, 170), (152, 170))
    f.arrow((85, 140), (85, 92))
    f.text(95, 120, "next step", "small")
    f.arrow((85, 200), (85, 265), (188, 265))
    return f


def epoch() -> Figure:
    """One epoch as a cycle."""
    f = Figure(800, 335, "One epoch: measure, diagnose, propose, evaluate, backward, step")
    f.box(20, 40, 160, 64, "measure", "baseline, search split")
    f.box(225, 40, 150, 64, "diagnose", "earliest failure")
    f.box(420, 40, 150, 64, "propose", "estimator")
    f.box(615, 40, 165, 64, "evaluate", "candidate beside", "baseline, gate split")
    f.box(615, 160, 165, 64, "loss.backward()", "verdict on", "harness.grad")
    f.box(400, 160, 170, 64, "optimizer.step()", "or Accept / Reject")
    f.box(150, 130, 200, 52, "promoted", "the branch moves", kind="good")
    f.box(150, 205, 200, 52, "rejected", "kept under a ref", kind="bad")
    f.box(400, 255, 170, 46, "undecided", "stays pending", kind="plain")
    f.arrow((180, 72), (223, 72))
    f.arrow((375, 72), (418, 72))
    f.arrow((570, 72), (613, 72))
    f.arrow((697, 104), (697, 158))
    f.arrow((615, 192), (572, 192))
    f.arrow((400, 180), (352, 158))
    f.arrow((400, 204), (352, 228))
    f.arrow((485, 224), (485, 253))
    f.arrow((150, 156), (80, 156), (80, 106))
    f.arrow((250, 257), (250, 316), (592, 316), (592, 130), (495, 130), (495, 106))
    f.text(260, 309, "the next proposal", "small")
    return f


def splits() -> Figure:
    """Which split is for what."""
    f = Figure(780, 290, "The three splits: search is learned from, gate decides, sealed is opened on purpose")
    f.box(20, 30, 220, 80, "search", "proposers read these", "trajectories")
    f.box(280, 30, 220, 80, "gate", "candidate and baseline play", "the same tasks and seeds")
    f.box(540, 30, 220, 80, "sealed", "held out; each opening", "is recorded", kind="warm")
    f.box(20, 180, 220, 70, "proposals", "evidence and prediction")
    f.box(280, 180, 220, 70, "verdict", "flips, loss, statistics,", "cost, who decided")
    f.box(540, 180, 220, 70, "result", "with the random control", "next to it", kind="warm")
    f.arrow((130, 110), (130, 178))
    f.arrow((390, 110), (390, 178))
    f.arrow((650, 110), (650, 178))
    f.arrow((240, 215), (278, 215))
    f.arrow((500, 215), (538, 215))
    f.text(519, 206, "once", "small", "middle")
    f.text(
        390,
        275,
        "Nothing that a proposer saw decides, and nothing that decided is reported as the result.",
        "small",
        "middle",
    )
    return f


def git() -> Figure:
    """Refs and notes of a lab."""
    f = Figure(780, 300, "What git holds: the branch of promotions, refs for every candidate, notes with verdicts")
    f.text(20, 90, "refs/heads/main", "mono")
    for number, x in enumerate((200, 330, 460, 590)):
        f.dot(x, 85, "good" if number else "box")
        if number:
            f.line((x - 121, 85), (x - 9, 85))
    f.text(200, 65, "starter", "small", "middle")
    f.text(330, 65, "promoted", "small", "middle")
    f.text(460, 65, "promoted", "small", "middle")
    f.text(590, 65, "baseline", "bold", "middle")
    for x, y in ((400, 165), (530, 165)):
        f.dot(x, y, "bad")
    f.line((337, 91), (393, 158))
    f.line((467, 91), (523, 158))
    f.text(20, 170, "refs/harnesslab/rejected/<id>", "mono")
    f.dot(670, 220, "warm")
    f.line((597, 92), (663, 213))
    f.text(20, 225, "refs/harnesslab/candidates/<id>", "mono")
    f.text(685, 225, "pending", "small")
    f.text(530, 193, "with the reason", "small", "middle")
    f.box(20, 250, 740, 36, kind="plain")
    f.text(35, 273, "refs/notes/harnesslab", "mono")
    f.text(225, 273, "a verdict on each candidate, as JSON: flips, statistics, cost, who decided, why", "small")
    return f


def rooms() -> Figure:
    """The packages and the direction of imports."""
    f = Figure(760, 420, "The packages; an arrow means may import")
    for x, name in ((60, "panels"), (225, "server"), (390, "magics"), (555, "cli")):
        f.box(x, 20, 145, 44, name)
    f.box(60, 105, 640, 44, "trainer")
    f.box(60, 190, 310, 44, "lab")
    f.box(390, 190, 310, 44, "analysis")
    f.box(60, 275, 310, 44, "rollout")
    f.box(390, 275, 310, 44, "store", kind="good")
    f.box(60, 360, 145, 44, "harness", kind="good")
    f.box(225, 360, 145, 44, "llm")
    f.box(390, 360, 310, 44, "errors, plainjson, redaction")
    for x in (132, 297, 462, 627):
        f.arrow((x, 64), (x, 103))
    f.arrow((215, 149), (215, 188))
    f.arrow((545, 149), (545, 188))
    f.arrow((370, 212), (388, 212))
    f.arrow((215, 234), (215, 273))
    f.arrow((545, 234), (545, 273))
    f.arrow((132, 319), (132, 358))
    f.arrow((297, 319), (297, 358))
    f.arrow((545, 319), (545, 358))
    f.text(715, 302, "stands", "small")
    f.text(715, 318, "alone", "small")
    return f


FIGURES = {"harness": harness, "step": step, "epoch": epoch, "splits": splits, "git": git, "rooms": rooms}


def main() -> None:
    """Write every figure."""
    for name, draw in FIGURES.items():
        (Path(__file__).parent / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
