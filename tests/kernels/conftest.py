"""What tests of compiled passes share."""

import pytest

from admm_softmax.kernels import thresholds


@pytest.fixture(params=[0, 1000], ids=["tiles", "panels"])
def products(request, monkeypatch):
    """X W by tiles, or by turned panels, whatever the size and the CPU; many classes always so."""
    monkeypatch.setattr(thresholds, "COLUMNS_PER_CLASS", request.param)
