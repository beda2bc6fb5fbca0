"""The compiled twins: what `kernels` specifies in NumPy, at the speed of memory.

Nothing here is imported before a problem is large enough to repay loading Numba; see
`admm_softmax.kernels.choice`.

    tiles, thin     register tiles of X W and Xᵀ R, and thin products made of them
    gather          sparse rows times a thin dense matrix
    exponential     an exponential that vectorises
    zstep, rows     the z-step and the row kernels on a tile of rows
    folds           whole passes: product, row kernel, transposed product
    programs        which NumPy kernel is which compiled one
"""
