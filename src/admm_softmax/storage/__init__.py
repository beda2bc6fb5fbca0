"""Results kept on disk: written whole or not at all, and read back only if undamaged."""
