"""Figures of data: classes and photographs, before any model."""
