"""
Soft labels
===========

Where several people have labelled each row, ``y`` may be an n × K matrix: the share of votes
for each class. Here five annotators vote on every digit, and do not always agree. What will others
say about new rows? A model of the majority's vote does not know that anyone disagreed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from admm_softmax import SoftmaxRegression

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, train_size=600, random_state=0)

# %%
# An annotator confuses a digit with those whose images are near it.
random = np.random.default_rng(0)
means = np.array([X_train[y_train == k].mean(axis=0) for k in range(10)])


def votes(X):
    """How many of five annotators vote for each digit."""
    chances = np.exp(-((X[:, None] - means) ** 2).sum(axis=2) / 2.5)
    return np.array([random.multinomial(5, p / p.sum()) for p in chances])


train_votes, test_votes = votes(X_train), votes(X_test)
print("votes on the first rows:", *train_votes[:3], sep="\n")

# %%
# Both kinds of labels go into the same ``fit``. The loss is that of the votes on new rows.
labels = {"majority": train_votes.argmax(axis=1), "shares": train_votes / 5}
alphas = np.logspace(0, -4, 9)
losses = {name: [] for name in labels}
for name, given in labels.items():
    for alpha in alphas:
        logs = SoftmaxRegression(alpha=alpha).fit(X_train, given).predict_log_proba(X_test)
        losses[name].append(-(test_votes / 5 * logs).sum(axis=1).mean())

fig, axis = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
for name, values in losses.items():
    axis.semilogx(alphas, values, "o-", label=f"trained on {name}")
axis.set(xlabel="alpha", ylabel="loss on the votes on new rows")
axis.grid(alpha=0.25)
axis.legend()
