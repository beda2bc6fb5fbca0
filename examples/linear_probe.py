"""A linear probe of frozen features: DINOv2's recipe on digits, with few shots and a figure.

python examples/linear_probe.py
"""

import numpy as np
from sklearn.datasets import load_digits

from admm_softmax import probe

pixels, digits = load_digits(return_X_y=True)
features = (pixels / 16).astype(np.float16)  # as a network would hand them over
train, test = (features[:1300], digits[:1300]), (features[1300:], digits[1300:])

found = probe(train, test=test, shots=(1, 2, 4, 8, 16), repeats=5, normalize="l2")
print(found)
for size in (1, 2, 4, 8, 16):
    values = [shot.value for shot in found.shots if shot.shots == size]
    print(f"{size:2d} rows per class: {np.mean(values):.3f} ± {np.std(values):.3f}")
found.to_json("probe.json")
found.plot().savefig("probe.png")
