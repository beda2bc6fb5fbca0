"""Draws the rooms of the library and the way of the data: `python docs/pictures/draw_house.py`.

Writes house.svg beside this file. Its colours are the page's where the page has any.
"""

from pathlib import Path

WIDTH, HEIGHT = 760, 640

#: Floors from the roof down: name of the floor, and its rooms with a line about each.
FLOORS = (
    ("for people", (
        ("cli", "the command"),
        ("report", "one HTML page"),
        ("experiments", "the paper's tables"),
    )),
    ("for scikit-learn", (
        ("estimators", "fit, predict, save"),
        ("probes", "the protocol"),
        ("evaluation, reading", "scores and files"),
    )),
    ("many fits", (
        ("path", "sweeps of α and ρ"),
        ("targets", "many labels on one X"),
        ("contracts", "checks for your own"),
    )),
    ("one fit", (
        ("solvers", "ADMM, L-BFGS, Newton, …; run() times and stops them"),
    )),
    ("the question", (
        ("problem", "design + labels + weights + penalty: F, ∇F, Hessian products"),
    )),
    ("what it is made of", (
        ("design", "where rows live"),
        ("penalty", "α‖L(W − W_ref)‖², …"),
        ("features", "convolutions, AlexNet"),
    )),
    ("the ground", (
        ("sources", "files, block by block"),
        ("kernels", "passes over rows"),
        ("datasets", "MNIST, digits, …"),
    )),
)  # fmt: skip

STYLE = """
  .house { --ink: var(--pst-color-text-base, #1f2933); --soft: var(--pst-color-text-muted, #52606d);
    --wall: var(--pst-color-border, #9aa5b1); --room: var(--pst-color-surface, #f1f5f9);
    --way: var(--pst-color-primary, #2a6f97); font-family: system-ui, sans-serif; }
  .house .room { fill: var(--room); stroke: var(--wall); }
  .house .name { fill: var(--ink); font-size: 15px; font-weight: 600; text-anchor: middle; }
  .house .line { fill: var(--soft); font-size: 12.5px; text-anchor: middle; }
  .house .floor { fill: var(--soft); font-size: 13px; }
  .house .roof { fill: none; stroke: var(--wall); stroke-width: 2; }
  .house .way { fill: none; stroke: var(--way); stroke-width: 3; }
  .house .tip { fill: var(--way); }
  .house .word { fill: var(--way); font-size: 13px; font-weight: 600; text-anchor: middle; }
"""

LEFT, RIGHT, TOP, HIGH, GAP = 150, 690, 86, 58, 20


def room(x, y, width, name, line):
    """A box with a name and a line below it."""
    middle = x + width / 2
    return (
        f'<rect class="room" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{HIGH}" rx="6"/>'
        f'<text class="name" x="{middle:.0f}" y="{y + 25:.0f}">{name}</text>'
        f'<text class="line" x="{middle:.0f}" y="{y + 44:.0f}">{line}</text>'
    )


def floor(i, name, rooms):
    """The rooms of a floor, side by side, and its name at the left."""
    y = TOP + i * (HIGH + GAP)
    width = (RIGHT - LEFT - 12 * (len(rooms) - 1)) / len(rooms)
    parts = [f'<text class="floor" x="4" y="{y + 34:.0f}">{name}</text>']
    for j, (title, line) in enumerate(rooms):
        parts.append(room(LEFT + j * (width + 12), y, width, title, line))
    return "\n".join(parts)


def way():
    """The arrow of the data, from the ground to the roof."""
    x = RIGHT + 28
    bottom = TOP + len(FLOORS) * (HIGH + GAP) - GAP
    return (
        f'<path class="way" d="M {x} {bottom} V {TOP + 14}"/>'
        f'<path class="tip" d="M {x - 8} {TOP + 16} L {x} {TOP} L {x + 8} {TOP + 16} Z"/>'
        f'<text class="word" transform="translate({x + 24} {(TOP + bottom) / 2}) rotate(90)">'
        "the way of the data</text>"
    )


def picture():
    """The picture as SVG."""
    ridge, eaves = (LEFT + RIGHT) / 2, TOP - 12
    floors = "\n".join(floor(i, name, rooms) for i, (name, rooms) in enumerate(FLOORS))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="house" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" aria-label="The rooms of the library, floor by floor">\n'
        f"<style>{STYLE}</style>\n"
        f'<path class="roof" d="M {LEFT - 14} {eaves} L {ridge} 14 L {RIGHT + 14} {eaves}"/>\n'
        f'<text class="word" x="{ridge}" y="56">imports never point up</text>\n'
        f"{floors}\n{way()}\n</svg>\n"
    )


def main():
    """Write the picture."""
    (Path(__file__).parent / "house.svg").write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
