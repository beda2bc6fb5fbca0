"""
Reading the diagnostics: the ρ of ADMM
======================================

ADMM converges for every ρ > 0, but at very different speeds. The two residuals tell which side
is wrong: a primal residual that lags asks for a larger ρ, a dual one for a smaller.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from admm_softmax import ADMM, LBFGS, Problem, run

X, y = load_digits(return_X_y=True)
problem = Problem.of(X / 16, y, alpha=1e-3)
least = run(problem, LBFGS(), tol=1e-7).history["objective"].min()

solvers = {
    "ρ = 1e-4": ADMM(rho=1e-4),
    "ρ = 1": ADMM(rho=1.0),
    "ρ automatic": ADMM(rho="auto"),
    "automatic, relaxed": ADMM(rho="auto", relaxation=1.7),
    "then L-BFGS": ADMM(rho="auto", relaxation=1.7).then(LBFGS(preconditioner="gram")),
}
histories = {
    name: run(problem, solver, tol=1e-5, max_iter=60).history for name, solver in solvers.items()
}

# %%
# How far F is above its minimum.
fig, axis = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for name, history in histories.items():
    gap = history["objective"] / least - 1
    axis.semilogy(history["passes"], gap.clip(1e-7), label=name)
axis.set(xlabel="passes over X", ylabel="F / min F − 1", xlim=(0, 60))
axis.grid(alpha=0.25)
axis.legend()

# %%
# Where ρ is too small, Z may go where it likes, and XW follows slowly: the primal residual stays.
histories["ρ = 1e-4"].plot()

# %%
# ADMM, and then L-BFGS with ADMM's factorisation: a dotted line marks where one hands over.
histories["then L-BFGS"].plot()
