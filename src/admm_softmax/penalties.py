"""The penalties to give to an estimator as `penalty=`.

| penalty            | R(W) / α                                   | what is exactly zero     |
|--------------------|--------------------------------------------|--------------------------|
| `Tikhonov`         | ½ ‖L (W − W_ref)‖²                         | nothing                  |
| `Lasso`            | ‖W‖₁                                       | entries of W             |
| `ElasticNet`       | r ‖W‖₁ + (1 − r)/2 ‖W‖²                    | entries of W             |
| `GroupLasso`       | Σ_g f_g ‖W_g‖                              | features, in all classes |
| `SparseGroupLasso` | r ‖W‖₁ + (1 − r) Σ_g f_g ‖W_g‖             | both                     |
| `TotalVariation`   | ‖DW‖₁                                      | differences of W         |
| `NuclearNorm`      | the sum of W's singular values             | singular values          |
| `Bounds`           | ½ ‖W‖² within lower ≤ W ≤ upper            | what a bound holds there |

`ridge=` adds ridge/2 ‖L (W − W_ref)‖² to any of them, with `operator=` for L.

>>> from admm_softmax import SoftmaxRegression, penalties
>>> clf = SoftmaxRegression(alpha=1e-3, penalty=penalties.GroupLasso())
"""

from admm_softmax.penalty import (
    Bounds,
    ElasticNet,
    GroupLasso,
    Lasso,
    NuclearNorm,
    SparseGroupLasso,
    Tikhonov,
    TotalVariation,
)

__all__ = [
    "Bounds",
    "ElasticNet",
    "GroupLasso",
    "Lasso",
    "NuclearNorm",
    "SparseGroupLasso",
    "Tikhonov",
    "TotalVariation",
]
