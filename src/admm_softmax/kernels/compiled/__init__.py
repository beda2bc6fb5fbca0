"""The compiled twins: what `kernels` specifies in NumPy, at the speed of memory.

Nothing here is imported before a problem is large enough; see `admm_softmax.kernels.thresholds`.

Without Numba, in every process that runs compiled code:

    passes          the functions that Python calls
    entries         how it calls them
    loading         functions in memory, by name
    code_store      functions on disk, compiled by an earlier process
    target          the vectors of the CPU that Numba compiles for, and tiles to fit
    layout, arrays  memory that passes work in, and arrays passed to them
    programs        row kernels with their inputs, as the passes take them
    triangular      triangular solves with few columns
    coordinates     coordinate descent

With Numba, in processes that compile:

    jit, pipeline   how functions are compiled
    lowering        Numba's part of it: to LLVM's intermediate code
    object_code, background   LLVM's part, and the thread that it runs in
    c_entries       the C functions that `entries` calls
    tiles, thin     register tiles of X W and Xᵀ R, and thin products made of them
    panels          panels of X, copied or turned
    halves          float16 and bfloat16
    gather          sparse rows times a thin dense matrix
    lanes           a vector of rows, which row kernels are written with
    integers        whole numbers
    elementary      an exponential and a logarithm of numbers and of lanes
    zstep, rows     the z-step and the row kernels on a tile of rows
    single_rows     row kernels in single precision
    targets         the row kernels for many targets
    folds           whole passes: product, row kernel, transposed product
    substitution    the steps of `triangular`
    coordinate_loops, tanh   loops over coordinates; tanh of an array
"""
