"""Draws the rooms of the library and the way of the data: `python docs/pictures/draw_house.py`.

Writes house.svg and house-narrow.svg beside this file. Their colours are the page's where the
page has any.
"""

from pathlib import Path

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
        ("penalty", "(α/2)‖L(W − W_ref)‖², …"),
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

HIGH, GAP = 58, 20


def room(x, y, width, name, line):
    """A box with a name and a line below it."""
    middle = x + width / 2
    return (
        f'<rect class="room" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{HIGH}" rx="6"/>'
        f'<text class="name" x="{middle:.0f}" y="{y + 25:.0f}">{name}</text>'
        f'<text class="line" x="{middle:.0f}" y="{y + 44:.0f}">{line}</text>'
    )


def roof(left, right, top):
    """The roof, with the rule of the house in it."""
    ridge, eaves = (left + right) / 2, top - 12
    return (
        f'<path class="roof" d="M {left - 14} {eaves} L {ridge} 14 L {right + 14} {eaves}"/>'
        f'<text class="word" x="{ridge}" y="{top - 20}">imports never point up</text>'
    )


def way(x, top, bottom):
    """The arrow of the data, from the ground to the roof."""
    return (
        f'<path class="way" d="M {x} {bottom} V {top + 14}"/>'
        f'<path class="tip" d="M {x - 8} {top + 16} L {x} {top} L {x + 8} {top + 16} Z"/>'
        f'<text class="word" transform="translate({x + 24} {(top + bottom) / 2}) rotate(90)">'
        "the way of the data</text>"
    )


def wide():
    """Rooms of a floor side by side, and its name at the left."""
    left, right, top = 150, 690, 86
    parts = [roof(left, right, top)]
    for i, (title, rooms) in enumerate(FLOORS):
        y = top + i * (HIGH + GAP)
        width = (right - left - 12 * (len(rooms) - 1)) / len(rooms)
        parts.append(f'<text class="floor" x="4" y="{y + 34}">{title}</text>')
        for j, (name, line) in enumerate(rooms):
            parts.append(room(left + j * (width + 12), y, width, name, line))
    bottom = top + len(FLOORS) * (HIGH + GAP) - GAP
    return drawing("wide", 760, bottom + 10, [*parts, way(right + 28, top, bottom)])


def narrow():
    """For telephones: rooms below each other, and the name of their floor above them."""
    left, right, top = 16, 300, 86
    parts, y = [roof(left, right, top)], top
    for title, rooms in FLOORS:
        parts.append(f'<text class="floor" x="{left}" y="{y + 12}">{title}</text>')
        y += 20
        for name, line in rooms:
            parts.append(room(left, y, right - left, name, line.split(";")[0].split(":")[0]))
            y += HIGH + 6
        y += GAP - 6
    bottom = y - GAP
    return drawing("narrow", 350, bottom + 10, [*parts, way(right + 18, top, bottom)])


def drawing(kind, width, height, parts):
    """The parts as one SVG."""
    body, box = "\n".join(parts), f"0 0 {width} {height}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="house {kind}" viewBox="{box}" '
        f'role="img" aria-label="The rooms of the library, floor by floor">\n'
        f"<style>{STYLE}</style>\n{body}\n</svg>\n"
    )


def main():
    """Write both."""
    for name, picture in {"house": wide, "house-narrow": narrow}.items():
        (Path(__file__).parent / f"{name}.svg").write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
