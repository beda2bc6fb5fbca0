"""Finished runs on disk."""

from dataclasses import dataclass

import pytest

from admm_softmax.storage.records import Records


@dataclass
class Figures:
    penalty: str
    accuracy: float


@pytest.mark.parametrize("content", ["{", "[]", '{"penalty": "identity"}', '{"made": {}}'])
def test_a_file_that_does_not_fit_is_made_again(content, tmp_path):
    figures = Figures("identity", 0.5)
    (tmp_path / "name.json").write_text(content)
    records = Records(tmp_path, lambda: {"date": "today"})
    assert records(Figures, "name", "settings", lambda: figures) == figures
    assert records(Figures, "name", "settings", pytest.fail) == figures
    assert records.made["name"] == {"settings": "settings", "date": "today"}
