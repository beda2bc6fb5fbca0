"""Experiments on the public API."""
