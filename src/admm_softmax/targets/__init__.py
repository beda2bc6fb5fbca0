"""Many targets, or many samples of rows, on the same X."""
