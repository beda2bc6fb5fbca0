"""Turn what benchopt measured into a table and plots.

::

    python benchmarks/summarize.py outputs/bench.parquet [--readme]

Writes results/table.md and one plot a data set, and with --readme puts the table between
the marks in README.md. The gap is relative to the least objective that any solver reached.
"""

import argparse
import re
from datetime import date
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from datasets.simulated import SHAPES

from admm_softmax.report.provenance import describe_machine

HERE = Path(__file__).parent
GAPS = (1e-2, 1e-3, 1e-4)
OURS = "admm-softmax"
MARKS = "<!-- benchmark -->", "<!-- /benchmark -->"


def title(dataset):
    """'simulated[shape=tall]' → 'tall: 1,000,000 × 50, K = 10', and so on."""
    found = dict(re.findall(r"(\w+)=([^,\]]+)", dataset))
    if "shape" in found:
        n, d, K, density = SHAPES[found["shape"]]
        kind = f", {100 * density:g} %" if density < 1 else ""
        return f"{found['shape'].replace('-', ' ')}: {n:,} × {d:,}{kind}, K = {K}"
    if "set" in found:
        rows = f", {int(found['n_rows']):,} rows" if "n_rows" in found else ""
        return f"{found['set']} {found['features']}{rows}, K = 10"
    return dataset


def short(solver):
    return solver.replace("[solver=", " ").replace("]", "")


def time_to(curve, best, gap):
    reached = curve[(curve.objective_value - best) / best <= gap]
    return float(reached.time.min()) if len(reached) else np.inf


def seconds(value):
    return "–" if not np.isfinite(value) else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def summarize(frame):
    """One row a data set and solver: seconds to each gap."""
    records = []
    for dataset, group in frame.groupby("dataset_name", sort=False):
        best = group.objective_value.min()
        for solver, curve in group.groupby("solver_name", sort=False):
            times = [time_to(curve, best, gap) for gap in GAPS]
            records.append(
                {
                    "data": title(dataset),
                    "solver": short(solver),
                    **dict(zip(GAPS, times, strict=True)),
                }
            )
    return pd.DataFrame(records)


def table(summary):
    lines = [
        "| data | solver | 1e-2 | 1e-3 | 1e-4 | fastest peer / this, at 1e-3 |",
        "|---|---|---|---|---|---|",
    ]
    for data, group in summary.groupby("data", sort=False):
        peers = group[~group.solver.str.startswith(OURS)]
        peer = peers[1e-3].min()
        for k, row in enumerate(group.sort_values([1e-3, 1e-2]).itertuples(index=False)):
            name, times = row[1], row[2:]
            ratio = "–"
            if np.isfinite(times[1]) and np.isfinite(peer):
                ratio = f"{peer / times[1]:.1f}"
            elif np.isfinite(times[1]):
                ratio = "no peer got there"
            shown = f"**{name}**" if name.startswith(OURS) else name
            cells = " | ".join(seconds(t) for t in times)
            lines.append(f"| {data if k == 0 else ''} | {shown} | {cells} | {ratio} |")
    return "\n".join(lines)


def plot(frame, folder):
    names = sorted({short(s) for s in frame.solver_name})
    ours = [name for name in names if name.startswith(OURS)]
    peers = [name for name in names if not name.startswith(OURS)]
    style = {name: plt.get_cmap("tab10")(i) for i, name in enumerate(ours)}
    style |= {name: plt.get_cmap("Dark2")(i % 8) for i, name in enumerate(peers)}
    for dataset, group in frame.groupby("dataset_name", sort=False):
        best = group.objective_value.min()
        figure, axis = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
        for solver, points in group.groupby("solver_name", sort=False):
            curve, name = points.sort_values("time"), short(solver)
            gap = np.maximum((curve.objective_value - best) / best, 1e-8)
            is_ours = name in ours
            axis.plot(
                curve.time, gap, label=name, color=style[name],
                linewidth=2.4 if is_ours else 1.3, linestyle="-" if is_ours else "--",
            )  # fmt: skip
        axis.set(
            xscale="log",
            yscale="log",
            ylim=(1e-7, 3),
            xlim=(1e-2, None),
            xlabel="seconds",
            ylabel="relative gap",
        )
        axis.set_title(title(dataset), loc="left")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        name = re.sub("[^a-z]+", "-", title(dataset).split(":")[0].split(",")[0].lower())
        figure.savefig(folder / f"{name}.png", dpi=130)
        plt.close(figure)


def into_readme(text, path):
    readme = path.read_text(encoding="utf-8")
    before, rest = readme.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    path.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--readme", action="store_true")
    arguments = parser.parse_args()
    frame = pd.concat([pd.read_parquet(path) for path in arguments.results], ignore_index=True)
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    head = (
        "Seconds until F is within 1e-2, 1e-3 and 1e-4 of the least value found, alpha = 1e-3, "
        f"float32, on {describe_machine()}, {date.today()}. "
        "Set-up is on the clock, compiling is not (it is cached)."
    )
    text = f"{head}\n\n{table(summarize(frame))}"
    (folder / "table.md").write_text(text + "\n", encoding="utf-8")
    plot(frame, folder)
    if arguments.readme:
        into_readme(text, HERE.parent / "README.md")
    print(text)


if __name__ == "__main__":
    main()
