"""Array functions on row blocks. No classes, no state, no knowledge of where rows live.

A *row kernel* has the signature ::

    kernel(scores, *rows) -> (R, new_rows, sums)

`scores` is a block of X W, `rows` are the matching blocks of per-row arrays, `R` (or
None) is what the design multiplies by the block's transpose and sums, `new_rows` are
per-row results and `sums` are scalars added up over blocks. A kernel never writes to
its arguments, so an engine may run a block twice.
"""
