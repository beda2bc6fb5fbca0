"""The page about a fit, a sweep or an evaluation; in a real browser nothing overflows."""

import base64
import html
import json
import os
import re
import shutil
import struct
import subprocess
import zlib

import numpy as np
import pytest
from sklearn.datasets import load_digits

pytest.importorskip("jinja2", reason="reports need jinja2")
pytest.importorskip("skops", reason="model folders need skops")

from admm_softmax import SoftmaxRegression, SoftmaxRegressionCV, load
from admm_softmax.cli import main
from admm_softmax.evaluation import evaluate
from admm_softmax.report.summary import write_summary
from admm_softmax.report.svg import Axis, Line, coefficient_image, line_chart
from tests.pages import assert_self_contained

X, y = load_digits(return_X_y=True)
LONG = "a_class_whose_name_is_much_longer_than_a_telephone_is_wide_" * 2


@pytest.fixture(scope="module")
def cv():
    names = np.array([f"digit {k}" for k in range(9)] + [LONG])
    return SoftmaxRegressionCV([1.0, 0.1, 0.01], cv=3).fit(X[::2], names[y[::2]])


@pytest.fixture(scope="module")
def found(cv):
    names = np.array([f"digit {k}" for k in range(9)] + [LONG])
    rows, truth = X[1::2], names[y[1::2]]
    return evaluate([(cv.predict_log_proba(rows), truth)], cv.classes_, resamples=20)


def text_of(page):
    words = re.sub(r"<(style|svg).*?</\1>|<[^>]+>", " ", page, flags=re.S)
    return " ".join(html.unescape(words).split())


def test_a_page_about_everything(cv, found, tmp_path):
    page = write_summary(
        tmp_path / "r.html", cv, {"data": {"n_rows": 899}}, found, image_shape=(8, 8)
    ).read_text(encoding="utf-8")
    assert_self_contained(page)
    words = text_of(page)
    right = found.figures["accuracy"].value
    assert f"right in {100 * right:.1f} % of cases" in words
    assert "learnt from 899 examples" in words
    for heading in (
        "How good is it?", "What is mistaken for what?", "Can its probabilities be believed?",
        "Which penalty?", "How did the fit go?", "Is it done?", "Class by class",
        "What it looks at", "Largest coefficients", "How it was made",
    ):  # fmt: skip
        assert heading in words, heading
    assert page.count("data:image/png;base64,") == 10
    assert "#" not in re.sub(r"<style>.*?</style>|&#\d+;", "", page, flags=re.S)  # no fixed colours


def test_a_fit_alone_does_not_claim_to_be_good(tmp_path):
    model = SoftmaxRegression(0.1).fit(X, y > 4)
    words = text_of(write_summary(tmp_path / "r.html", model).read_text(encoding="utf-8"))
    assert "How good it is on new examples is not part of this page" in words
    assert "How good is it?" not in words
    assert "Which penalty?" not in words


def test_an_evaluation_alone(found, tmp_path):
    words = text_of(write_summary(tmp_path / "r.html", evaluation=found).read_text())
    assert "Class by class" in words
    assert "Largest coefficients" not in words
    with pytest.raises(ValueError, match="a model or an evaluation"):
        write_summary(tmp_path / "r.html")


def test_names_of_features_and_their_weights(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:, 10:14], columns=["ink", "<b>", "c", "d"])
    model = SoftmaxRegression(0.1).fit(frame, y % 3)
    page = write_summary(tmp_path / "r.html", model).read_text(encoding="utf-8")
    assert "&lt;b&gt;" in page
    assert "<b> " not in page
    assert f"ink {model.coef_[0, 0]:+.3g}" in text_of(page)
    with pytest.raises(ValueError, match="has 4 pixels, and the model has 64 features"):
        write_summary(tmp_path / "r.html", SoftmaxRegression(1.0).fit(X, y), image_shape=(2, 2))


def test_the_command(cv, found, tmp_path, capsys, monkeypatch):
    pytest.importorskip("typer")
    monkeypatch.chdir(tmp_path)
    cv.save("model")
    content = {"kind": "evaluation", **found.to_json()}
    (tmp_path / "e.json").write_text(json.dumps(content))
    assert main(["report", "model", "e.json", "--image-shape", "8x8", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["bytes"] == (tmp_path / "report.html").stat().st_size
    assert main(["report", "e.json", "--title", "Mine", "--out", "e.html"]) == 0
    assert "<h1>Mine</h1>" in (tmp_path / "e.html").read_text()
    (tmp_path / "n.json").write_text("{}")
    capsys.readouterr()
    assert main(["report", "n.json"]) == 1
    assert "n.json is not an evaluation: make one by" in capsys.readouterr().err
    assert main(["report", "model", "--image-shape", "big"]) == 2
    assert load("model").alpha_ == cv.alpha_


def test_axes():
    axis = Axis.over([0.01, 100.0], 0.0, 100.0, True)
    assert axis.ticks() == [0.01, 0.1, 1.0, 10.0, 100.0]
    assert axis(1.0) == pytest.approx(50.0)
    linear = Axis.over([0.0, 10.0], 0.0, 100.0, False)
    assert linear.ticks() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    chart = line_chart([Line("a", [1, 2], [np.nan, 3.0])], "x", label="a & b")
    assert "nan" not in chart
    assert 'aria-label="a &amp; b"' in chart


def test_an_image_of_weights_is_a_png():
    content = base64.b64decode(
        coefficient_image(np.array([[1.0, -1.0, 0.0]]), 1.0).partition(",")[2]
    )
    assert struct.unpack(">II", content[16:24]) == (3, 1)
    length = struct.unpack(">I", content[33:37])[0]
    pixels = zlib.decompress(content[41 : 41 + length])[1:]
    assert [pixels[4 * i + 3] for i in range(3)] == [255, 255, 0]
    assert pixels[2] > pixels[0]  # blue for the class
    assert pixels[4] > pixels[6]  # red against it


CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
#: What sticks out of a frame of this width, by name and right edge.
LOOK = """
<iframe id="page" style="width:{width}px;height:900px;border:0" srcdoc="{page}"></iframe>
<script>
document.getElementById("page").onload = event => {{
  const inner = event.target.contentDocument, out = [];
  inner.querySelectorAll("details").forEach(d => d.open = true);
  for (const element of inner.querySelectorAll("body *")) {{
    const box = element.getBoundingClientRect();
    if (box.width && (box.right > {width} + 1 || box.left < -1)) out.push(element.tagName + " " + box.right);
  }}
  if (inner.documentElement.scrollWidth > {width}) out.push("page " + inner.documentElement.scrollWidth);
  document.title = "checked " + inner.querySelectorAll("svg").length + ": " + out.slice(0, 5).join(", ");
}};
</script>
"""


def what_sticks_out(page, width, folder):
    """The title that the browser gives the page: how many charts it has, and what sticks out."""
    look = folder / "look.html"
    content = html.escape(page, quote=True)
    look.write_text(LOOK.format(width=width, page=content), encoding="utf-8")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={folder / 'profile'}", "--window-size=1400,1000",
        "--virtual-time-budget=10000", "--dump-dom", look.as_uri(),
    ]  # fmt: skip
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    title = re.search(r"<title>(.*?)</title>", shown)
    assert title is not None, shown[:300]
    return title[1]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
@pytest.mark.skipif(os.name != "posix", reason="Chromium is started as on Linux")
class TestInABrowser:
    @pytest.mark.parametrize("width", [390, 1280])
    def test_nothing_overflows(self, width, cv, found, tmp_path):
        facts = {"data": {"path": "x" * 200}}
        page = write_summary(tmp_path / "r.html", cv, facts, found, image_shape=(8, 8))
        text = page.read_text(encoding="utf-8")
        assert what_sticks_out(text, width, tmp_path) == "checked 5: "

    def test_what_overflows_is_noticed(self, tmp_path):
        page = "<body style='margin:0'><div style='width:500px'>wide</div></body>"
        assert "DIV 500" in what_sticks_out(page, 390, tmp_path)
