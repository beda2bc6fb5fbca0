"""Figures drawn from plain arrays. Matplotlib is imported when one is drawn."""
