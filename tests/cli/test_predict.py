"""`admm-softmax predict`, `evaluate` and `export`; the command as a process."""

import csv
import importlib
import io
import json
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from admm_softmax import SoftmaxRegression, load
from admm_softmax.cli import main
from admm_softmax.reading import tables as reading_tables

FIT = ("fit", "train.csv", "-t", "kind", "--id", "id", "--encode", "--alpha", "0.01")


@pytest.fixture
def model(tables, run_json):
    run_json(*FIT)
    return load("model")


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_predictions_keep_ids_and_stream(model, tables, run, monkeypatch):
    test = tables[100:]
    columns = ["sl", "sw", "pl", "pw", "city"]
    for rows in (7, 20_000):
        monkeypatch.setattr(reading_tables.frames, "__defaults__", (rows,))
        code, out, err = run("predict", "model", "test.csv", "--id", "id", "--proba")
        assert (code, err) == (0, "")
        found = rows_of(out)
        assert [row["id"] for row in found] == list(test["id"])
        assert [row["label"] for row in found] == list(model.predict(test[columns]))
        p = [[float(row[f"p_{c}"]) for c in model.classes_] for row in found]
        np.testing.assert_allclose(p, model.predict_proba(test[columns]), atol=1e-12)


def test_columns_may_come_in_any_order_but_must_be_there(model, tables, run, tmp_path):
    test = tables[100:]
    test[test.columns[::-1]].to_csv(tmp_path / "turned.csv", index=False)
    assert run("predict", "model", "turned.csv")[1] == run("predict", "model", "test.csv")[1]
    test.drop(columns=["sw", "pl"]).to_csv(tmp_path / "few.csv", index=False)
    code, out, err = run("predict", "model", "few.csv")
    assert (code, out) == (1, "")
    assert "few.csv has no column 'sw' and 1 more, which the model was fitted to" in err
    test.assign(age=3).to_csv(tmp_path / "many.csv", index=False)
    code, _, err = run("predict", "model", "many.csv")
    assert code == 1
    assert "has the column 'age', which the model does not know: leave it out by --drop age" in err
    assert run("predict", "model", "many.csv", "--drop", "age")[0] == 0


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "npy"])
def test_predictions_go_to_files(kind, model, tables, run_json, tmp_path):
    file = tmp_path / f"p.{kind}"
    if kind == "parquet":
        pq = pytest.importorskip("pyarrow.parquet")
    facts = run_json("predict", "model", "test.csv", "--id", "id", "--out", file)
    assert facts == {"predictions": str(file), "n_rows": 50}
    wanted = list(model.predict(tables[100:][["sl", "sw", "pl", "pw", "city"]]))
    if kind == "npy":
        labels = list(np.load(file))
    elif kind == "parquet":
        labels = pq.read_table(file).column("label").to_pylist()
    elif kind == "jsonl":
        labels = [json.loads(line)["label"] for line in file.read_text().splitlines()]
    else:
        labels = [row["label"] for row in rows_of(file.read_text())]
    assert labels == wanted


def test_a_failure_leaves_no_half_of_a_file(model, tables, run, tmp_path):
    broken = tables[100:].copy()
    broken.loc[149, "sl"] = np.nan
    broken.to_csv(tmp_path / "broken.csv", index=False)
    code, _, err = run("predict", "model", "broken.csv", "--out", "p.csv")
    assert code == 1
    assert "column 'sl' of broken.csv has no value in row 49" in err
    assert not (tmp_path / "p.csv").exists()


def test_standard_input_and_output(model, tables, tmp_path):
    def piped(*arguments, data):
        command = [sys.executable, "-m", "admm_softmax", *arguments]
        return subprocess.run(command, input=data, capture_output=True, cwd=tmp_path, check=False)

    data = (tmp_path / "test.csv").read_bytes()
    found = piped("predict", "model", "-", "--id", "id", data=data)
    assert found.returncode == 0, found.stderr
    assert found.stderr == b""  # no progress: the output is not a terminal
    assert len(rows_of(found.stdout.decode())) == 50
    empty = piped("predict", "model", "-", data=b"")
    assert empty.returncode == 1
    assert empty.stderr.startswith(b"Error: standard input is not a CSV file")


def test_array_files_are_predicted_block_by_block(run, run_json, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)).astype(np.float32), np.arange(60) % 3
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    sp.save_npz(tmp_path / "s.npz", sp.csr_array(X))
    np.save(tmp_path / "wide.npy", X[:, :3])
    X_nan = X.copy()
    X_nan[17, 2] = np.nan
    np.save(tmp_path / "nan.npy", X_nan)
    run_json("fit", "x.npy", "--labels", "y.npy", "--alpha", "0.1")
    dense = run("predict", "model", "x.npy")[1]
    assert [int(row["label"]) for row in rows_of(dense)] == list(load("model").predict(X))
    assert [int(row["row"]) for row in rows_of(dense)] == list(range(60))
    assert run("predict", "model", "s.npz")[1] == dense
    assert "has 3 columns, and the model was fitted to 4" in run("predict", "model", "wide.npy")[2]
    assert "row 17 of nan.npy holds NaN" in run("predict", "model", "nan.npy")[2]
    found = run_json("evaluate", "model", "x.npy", "--labels", "y.npy", "--resamples", "20")
    assert found["figures"]["accuracy"]["value"] == load("model").score(X, y)


def test_evaluate_knows_the_target_of_the_fit(model, tables, run, run_json, tmp_path):
    found = run_json("evaluate", "model", "test.csv", "--out", "e.json", "--resamples", "50")
    test = tables[100:]
    accuracy = (model.predict(test[["sl", "sw", "pl", "pw", "city"]]) == test["kind"]).mean()
    assert found["figures"]["accuracy"]["value"] == pytest.approx(accuracy)
    assert json.loads((tmp_path / "e.json").read_text()) == found
    code, out, _ = run("evaluate", "model", "test.csv", "--resamples", "50")
    assert code == 0
    for words in ("accuracy", "log loss", "Brier", "calibration", "precision", "virginica"):
        assert words in out
    test.assign(kind="rose").to_csv(tmp_path / "rose.csv", index=False)
    code, _, err = run("evaluate", "model", "rose.csv")
    assert code == 1
    assert "row 0 has the label 'rose', which the model does not know" in err


def test_pickles_are_loaded_on_request_only(model, tables, run, tmp_path):
    columns = ["sl", "sw", "pl", "pw"]
    other = SoftmaxRegression(0.1).fit(tables[columns], tables["kind"])
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(other))
    command = ("predict", "m.pkl", "test.csv", "--drop", "city,id,kind")
    code, out, err = run(*command)
    assert (code, out) == (1, "")
    assert "--trust" in err
    assert run(*command, "--trust")[0] == 0


def test_export_by_extension(tables, run, run_json, tmp_path):
    run_json("fit", "train.csv", "-t", "kind", "--drop", "city,id", "--alpha", "0.01")
    model = load("model")
    rows = tables[100:][["sl", "sw", "pl", "pw"]]
    assert run_json("export", "model", "m.npz")["bytes"] > 0
    np.testing.assert_array_equal(load("m.npz").predict(rows), model.predict(rows))
    run_json("export", "model", "m.skops")
    np.testing.assert_allclose(load("m.skops").predict_proba(rows), model.predict_proba(rows))
    code, _, err = run("export", "model", "m.doc")
    assert code == 2
    assert "OUT must end in .onnx" in err


def test_export_with_an_encoder(model, tables, run, run_json, tmp_path):
    code, _, err = run("export", "model", "m.npz")
    assert code == 1
    assert "encodes text columns" in err
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    run_json("export", "model", "m.onnx", "--float32")
    rows = tables[100:][["sl", "sw", "pl", "pw", "city"]]
    inputs = {
        name: rows[[name]].to_numpy(object if name == "city" else np.float32) for name in rows
    }
    _, p = ort.InferenceSession(tmp_path / "m.onnx").run(None, inputs)
    np.testing.assert_allclose(p, model.predict_proba(rows), atol=1e-6)


@pytest.mark.parametrize(
    "command",
    [
        "fit",
        "sweep",
        "predict",
        "evaluate",
        "export",
        "report",
        "probe",
        "demo",
        "reproduce",
        "warm-up",
    ],
)
def test_every_command_has_an_example_and_json(command, run):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"Example:  admm-softmax {command}" in " ".join(out.split("\n")).replace("   ", "  ")
    assert "--json" in out
    given = importlib.import_module("admm_softmax.cli.app").app.registered_commands
    (words,) = [each.callback.__doc__ for each in given if each.name == command]
    for line in re.findall(r"Example:.*", words):
        assert len(line) <= 78, "a terminal would break it in two"


def test_without_typer_there_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    assert main(["demo"]) == 1
    assert capsys.readouterr().err.startswith("The command admm-softmax needs typer: pip install")


def test_without_a_command_there_is_help(run):
    code, out, err = run()
    assert code in (0, 2)
    assert "evaluate" in out + err
