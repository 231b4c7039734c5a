"""Figures of runs: histories, sweeps, comparisons, planes of weights."""
