"""Stands here so that the tests in the folders beside it, too, find `small_runs`."""
