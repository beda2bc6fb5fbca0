"""The progress bar, and the lines written where there is no terminal."""

import io

from rich.console import Console

from admm_softmax.progress import Progress

RECORD = {"iteration": 3, "objective": 0.5, "gradient_norm": 1e-3, "val_accuracy": 0.9}


def test_progress_on_a_terminal_is_a_bar():
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with Progress(True, 10, console=console) as progress:
        progress.update(RECORD)
        progress.finish("converged", RECORD)
    text = console.file.getvalue()
    assert "0/10" in text
    assert text.rfind("3/3") > text.rfind("0/10")  # it ends as done
    assert "converged after 3 iterations" in text
    assert "90.00 %" in text


def test_the_last_line_fits_a_terminal_of_80_columns():
    record = {"iteration": 1000, "objective": 0.0921831, "gradient_norm": 2.8e-6}
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with Progress(True, 1000, console=console) as progress:
        progress.finish("iteration_limit", {**record, "val_accuracy": 0.95})
    assert "|∇F| 3e-06 val. 95.00 %" in console.file.getvalue()


def test_progress_elsewhere_is_a_few_lines(monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=False, width=120)
    monkeypatch.setattr("admm_softmax.progress.SECONDS_BETWEEN_LINES", 0.0)
    with Progress(True, 10, console=console) as progress:
        progress.update(RECORD)
        progress.finish("converged", RECORD)
    assert console.file.getvalue().splitlines() == [
        "iteration 3 of 10: objective 0.5, gradient 1.0e-03, validation 90.00 %",
        "converged after 3 iterations: objective 0.5, gradient 1.0e-03, validation 90.00 %",
    ]


def test_progress_counts_seconds_where_time_is_limited(monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=False, width=120)
    monkeypatch.setattr("admm_softmax.progress.SECONDS_BETWEEN_LINES", 0.0)
    with Progress(True, 1000, 2.5, console) as progress:
        for seconds in (0.4, 1.9, 7.0):
            progress.update({**RECORD, "seconds": seconds})
    starts = [line.partition(":")[0] for line in console.file.getvalue().splitlines()]
    assert starts == ["second 0 of 3", "second 1 of 3", "second 3 of 3"]


def test_a_bar_fits_a_line_of_80_characters():
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    record = {**RECORD, "iteration": 998, "objective": 0.123456789}
    with Progress(True, 1000, console=console) as progress:
        progress.update(record)
    shown = console.file.getvalue()
    assert "val. 90.00 %" in shown
    assert "…" not in shown
