"""The compiled twins: what `kernels` specifies in NumPy, at the speed of memory.

Nothing here is imported before a problem is large enough to repay loading Numba; see
`admm_softmax.kernels.thresholds`.

    target          the vectors of the CPU that Numba compiles for, and tiles to fit
    jit, arrays     how functions are compiled, and arrays passed to them
    tiles, thin     register tiles of X W and Xᵀ R, and thin products made of them
    gather          sparse rows times a thin dense matrix
    lanes           a vector of rows, which row kernels are written with
    exponential     an exponential of numbers and of lanes
    zstep, rows     the z-step and the row kernels on a tile of rows
    folds           whole passes: product, row kernel, transposed product
    programs        row kernels with their inputs, as the passes take them
    triangular      triangular solves with few columns
"""
