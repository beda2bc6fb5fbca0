"""
A linear probe
==============

``probe`` does what evaluations of frozen features do: fit under every C, choose on validation
rows, refit, and measure on test rows with bootstrap intervals. Here the features are the pixels
themselves, in half precision, as a network would hand them over.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from admm_softmax import probe

X, y = load_digits(return_X_y=True)
features = (X / 16).astype(np.float16)
train, test = (features[:1300], y[:1300]), (features[1300:], y[1300:])
sizes = (1, 2, 4, 8, 16)
found = probe(train, test=test, Cs=np.logspace(-4, 3, 15), shots=sizes, repeats=5, normalize="l2")
print(found)
found.plot()

# %%
# With few rows per class, five draws of them each.
fig, axis = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
values = [[shot.value for shot in found.shots if shot.shots == size] for size in sizes]
axis.errorbar(sizes, np.mean(values, axis=1), np.std(values, axis=1), fmt="o-", capsize=3)
axis.set_xscale("log", base=2)
axis.set_xticks(sizes, [str(size) for size in sizes])
axis.set(xlabel="rows per class", ylabel="test accuracy")
axis.grid(alpha=0.25)
