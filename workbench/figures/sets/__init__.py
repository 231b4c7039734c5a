"""Figures of sets: sizes, classes, curves, photographs."""
