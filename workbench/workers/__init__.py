"""Processes that compute for someone who has no torch: live heads, planes of weights, similar pictures."""
