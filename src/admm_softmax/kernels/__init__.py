"""Array functions on row blocks. They hold no state and do not know where rows are stored.

row_kernel   what a row kernel is: `RowKernel`
rows         the row kernels themselves, in NumPy: the specification
softmax, zstep   what they are made of
thresholds   from which size on compiled passes pay
compiled     compiled versions of the row kernels (their twins), and of whole passes
"""
