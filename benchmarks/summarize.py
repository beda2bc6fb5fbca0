"""Turn what benchopt measured into tables and plots.

::

    python benchmarks/summarize.py outputs/round-1.parquet outputs/round-2.parquet … [--readme]

Each file is a round. A time is the median over the rounds in which a solver ran on the data;
the gap is relative to the least objective that any solver reached in any round. Writes
results/table.md and one plot per data set, of the first round. Warns of a peer that ran in fewer
rounds than others on the data and is nearly as fast as the fastest. With --readme it also puts a
short table between the marks in README.md: a row per data set, at most --rows, with our
fastest solver and the fastest peer.
"""

import argparse
import re
import sys
from datetime import date
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from benchmark_utils.generators import SHAPES
from benchmark_utils.tables import RESULTS, publish

from admm_softmax.report.provenance import describe_machine

HERE = Path(__file__).parent
GAPS = (1e-2, 1e-3, 1e-4)
#: Gaps below it are rounding, and the best solver's own is zero.
SMALLEST_GAP = 1e-8
#: A peer within this factor of the fastest peer has to run in all rounds.
NEARLY = 1.5
OURS = "admm-softmax"
MARKS = "<!-- benchmark -->", "<!-- /benchmark -->"
METHOD = (
    "Set-up is on the clock, compiling is not (it is cached). A peer is warmed up and runs with "
    "the better of one thread and one per core, chosen by short fits. Times are medians over "
    "rounds; – stands for more than the time limit."
)


def title(dataset):
    """'simulated[shape=tall]' → 'tall: 1,000,000 × 50, K = 10', and so on."""
    found = dict(re.findall(r"(\w+)=([^,\]]+)", dataset))
    if "shape" in found:
        n, d, K, density = SHAPES[dataset.split("[")[0]][found["shape"]]
        kind = f", {100 * density:g} %" if density < 1 else ""
        return f"{found['shape'].replace('-', ' ')}: {n:,} × {d:,}{kind}, K = {K}"
    if "set" in found:
        rows = f", {int(found['n_rows']):,} rows" if "n_rows" in found else ""
        return f"{found['set']} {found['features']}{rows}, K = 10"
    return dataset


def short(solver):
    return solver.replace("[solver=", " ").replace("]", "")


def time_to(curve, best, gap, between):
    """Seconds to the first point within the gap.

    The points of a peer are runs of 1, 2, 3, 5, 9 … iterations, or ten iterations apart.
    `between` two of them its logarithm of the gap is taken to fall linearly, so that it does
    not pay for iterations that it did not need. Ours has a point at every iteration.
    """
    curve = curve.sort_values("time")
    times = curve.time.to_numpy()
    gaps = np.maximum((curve.objective_value.to_numpy() - best) / best, SMALLEST_GAP)
    if not (gaps <= gap).any():
        return np.inf
    k = int(np.argmax(gaps <= gap))
    if k == 0 or not between:
        return float(times[k])
    share = np.log(gaps[k - 1] / gap) / np.log(gaps[k - 1] / gaps[k])
    return float(times[k - 1] + share * (times[k] - times[k - 1]))


def seconds(value):
    return "–" if not np.isfinite(value) else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def ratio(peer, ours):
    if not np.isfinite(ours):
        return "–"
    return f"{peer / ours:.1f}" if np.isfinite(peer) else "no peer got there"


def summarize(frame):
    """One row per data set and solver: median seconds to each gap, the fastest first."""
    best = frame.groupby("dataset_name").objective_value.min()
    records = []
    for (dataset, solver), curves in frame.groupby(["dataset_name", "solver_name"], sort=False):
        rounds = [curve for _, curve in curves.groupby("round")]
        is_peer = not solver.startswith(OURS)
        times = [[time_to(c, best[dataset], gap, is_peer) for gap in GAPS] for c in rounds]
        records.append(
            {
                "data": title(dataset),
                "solver": short(solver),
                "threads": ", ".join(f"{n:.0f}" for n in np.unique(curves.objective_threads)),
                "runs": len(rounds),
                **dict(zip(GAPS, np.median(times, axis=0), strict=True)),
            }
        )
    summary = pd.DataFrame(records)
    summary["ours"] = summary.solver.str.startswith(OURS)
    order = {data: k for k, data in enumerate(summary.data.unique())}
    return summary.sort_values(
        ["data", 1e-3, 1e-2], key=lambda c: c.map(order) if c.name == "data" else c
    )


def too_few_runs(summary):
    """A warning for each peer that may be the fastest on some data, but ran in few rounds there."""
    for data, group in summary[~summary.ours].groupby("data", sort=False):
        least = group[1e-3].min()
        near = group[np.isfinite(group[1e-3]) & (group[1e-3] <= NEARLY * least)]
        for _, row in near[near.runs < group.runs.max()].iterrows():
            yield (
                f"warning: {row.solver} is within a factor {NEARLY} of the fastest peer on {data} "
                f"({seconds(row[1e-3])} and {seconds(least)} s), but ran in {row.runs} of "
                f"{group.runs.max()} rounds: add it to CONTENDERS in the Makefile"
            )


def full_table(summary):
    lines = [
        "| data | solver | threads | runs | 1e-2 | 1e-3 | 1e-4 | fastest peer / this, at 1e-3 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for data, group in summary.groupby("data", sort=False):
        peer = group[~group.ours][1e-3].min()
        for k, (_, row) in enumerate(group.iterrows()):
            shown = f"**{row.solver}**" if row.ours else row.solver
            cells = " | ".join(seconds(row[gap]) for gap in GAPS)
            first = data if k == 0 else ""
            lines.append(
                f"| {first} | {shown} | {row.threads} | {row.runs} | {cells} | "
                f"{ratio(peer, row[1e-3])} |"
            )
    return lines


def short_table(summary, rows):
    lines = [
        "| data | ours | seconds | fastest peer | threads | seconds | peer / ours, at 1e-3 |",
        "|---|---|---|---|---|---|---|",
    ]
    for data, group in list(summary.groupby("data", sort=False))[:rows]:
        # The fastest come first; where a side did not run at all, its cells stay empty.
        sides = [next(group[group.ours == ours].iterrows(), (0, None))[1] for ours in (True, False)]
        ours, peer = (["–", "", "–", np.inf] if side is None else _cells(side) for side in sides)
        lines.append(
            f"| {data} | {ours[0]} | {ours[2]} | {peer[0]} | {peer[1]} | {peer[2]} | "
            f"{ratio(peer[3], ours[3])} |"
        )
    return lines


def _cells(row):
    times = ", ".join(seconds(row[gap]) for gap in GAPS)
    return row.solver.removeprefix(OURS).strip(), row.threads, times, row[1e-3]


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
            gap = np.maximum((curve.objective_value - best) / best, SMALLEST_GAP)
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
        name = re.sub("[^a-z0-9]+", "-", re.split("[:,]", title(dataset))[0].lower())
        figure.savefig(folder / f"{name}.png", dpi=130)
        plt.close(figure)


def into_readme(text, path):
    readme = path.read_text(encoding="utf-8")
    before, rest = readme.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    path.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}", encoding="utf-8")


def read(paths):
    """All points of all curves, each with its round."""
    rounds = [pd.read_parquet(path).assign(round=k) for k, path in enumerate(paths)]
    return pd.concat(rounds, ignore_index=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--readme", type=Path, nargs="?", const=HERE.parent / "README.md")
    parser.add_argument("--rows", type=int, default=10, help="of the table in the README")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    frame = read(arguments.results)
    head = (
        "Seconds until F is within 1e-2, 1e-3 and 1e-4 of the least value found, alpha = 1e-3, "
        f"float32, on {describe_machine()}, {date.today()}. {METHOD}"
    )
    summary = summarize(frame)
    publish(arguments.out / "table.md", head, full_table(summary))
    for warning in too_few_runs(summary):
        print(warning, file=sys.stderr)
    first = frame.groupby(["dataset_name", "solver_name"])["round"].transform("min")
    plot(frame[frame["round"] == first], arguments.out)
    if arguments.readme:
        text = "\n".join(short_table(summary, arguments.rows))
        rest = "All solvers: [table](benchmarks/results/table.md)."
        into_readme(f"{head} {rest}\n\n{text}", arguments.readme)


if __name__ == "__main__":
    main()
