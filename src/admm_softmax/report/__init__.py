"""Reports: one self-contained HTML page, and the provenance of results."""
