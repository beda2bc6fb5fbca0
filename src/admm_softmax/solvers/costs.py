"""What factorisations and passes cost: the constants behind the choices of solvers by size.

They are compared with each other: a Gram matrix that is made must also be factorised, and pays
by the passes that it saves. The CPUs are those of `measured`.
"""

from __future__ import annotations

from admm_softmax._cpu import measured
from admm_softmax.problem import Problem

#: The largest matrix to factorise: two of them, in double precision, take 3.6 GB.
LARGEST_FACTOR = 15_000
#: The largest matrix to diagonalise for many targets. An eigendecomposition takes 10 d³ operations:
#: by count some ten seconds at this size, two minutes at 7,000. Chosen, not tuned.
LARGEST_EIGENPROBLEM = 3_000
#: Rows of a sample whose Gram matrix is good enough to precondition with: this many, or d if that
#: is more; twice as many if tol ≤ TIGHT, which takes many iterations.
SAMPLED_ROWS, TIGHT = 5_000, 1e-5
#: Passes that preconditioning by a Gram matrix saves, per digit of tol beyond the second.
PASSES_PER_DIGIT = 40.0
#: How much slower an operation is in a thin product than in a Gram matrix. Over 40,000 × 7,057
#: with ten classes the Xeon makes 2.5e11 of a Gram matrix's in a second and 1.05e11 of a pass's,
#: Zen 3 1.4e11 and 0.9e11.
THIN = measured(wide=2.5, narrow=1.5)
#: The same on any CPU, where a choice must not depend on it. On Zen 4 it is 1.2.
TYPICALLY_THIN = 2.0
#: What reading an entry of dense X costs beside that, in a compiled pass and in NumPy's products.
#: Steps of L-BFGS with two classes over 6,000 × 2,500, compiled, and 5,000 × 1,200, with NumPy,
#: take 0.23 and 1.05 ns per entry on Zen 4, which makes 1.5e11 operations of a Gram matrix per
#: second there.
READING, READING_BY_NUMPY = 20.0, 140.0
#: With this many times more columns than rows, the problem is solved in the rows' space.
WIDE = 2
#: Iterations of ADMM assumed when comparing costs of set-up and iterations.
TYPICAL_ITERATIONS = 100
#: The most operations in a step of Newton's method that cost less than the passes it saves, which
#: on small data consist of calls. Whole fits by L-BFGS / by Newton's method on an Emerald Rapids,
#: with AVX-512 and held to AVX2: with steps of 3.7e6 (300 × 20, K = 5) 2.5 and 2.0; 7.5e6
#: (2,000 × 60, two classes) 1.17 and 1.16; 8.3e6 (500 × 30, K = 4) 1.55 and 1.24; 1.1e7
#: (1,000 × 20, K = 5) 1.37 and 1.0; 2.1e7 (2,000 × 100, two classes) 0.7 and 0.65.
NEWTON_OPERATIONS = measured(wide=1.2e7, narrow=9e6)
#: What it costs per row and class beside its matrices, which are small where columns are few: some
#: ten operations of NumPy's on vectors, exponential and logarithm among them. By count; 200,000 × 3
#: with two classes take 18 ms per step, beside other work.
NEWTON_SCORE = 100.0


def pass_cost(problem: Problem) -> float:
    """What a pass over X costs, in operations of a Gram matrix: 4 K for each entry, when thin."""
    return 4.0 * problem.n_classes * max(1, problem.design.entries) * THIN


def reading_cost(problem: Problem) -> float:
    """What it costs beside that to read dense X in a pass, which counts where classes are few."""
    design = problem.design
    if design.is_sparse:
        return 0.0
    by_numpy = not (design.rows_stay or design.compiles(problem.n_classes))
    return design.entries * (READING_BY_NUMPY if by_numpy else READING)


def eigenproblem_cost(d: int) -> float:
    """What an eigendecomposition costs, in Cholesky factorisations of the same size.

    Measured with AVX-512: 6, 7, 17 and 39 for d = 500, 1,000, 2,000 and 4,000. Half of it is
    bound by memory, so that the ratio grows as matrices outgrow the cache. On Zen 3: 32, 28,
    34 and 33.
    """
    return measured(wide=max(6.0, d / 110), narrow=32.0)
