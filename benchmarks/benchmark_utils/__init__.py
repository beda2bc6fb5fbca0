"""What the benchmark's files share. benchopt makes this folder importable by its name."""
