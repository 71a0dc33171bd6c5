"""Benchmark runs as validated JSON, as one page with plots, as a table, and side by side."""
