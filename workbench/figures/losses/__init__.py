"""Figures of losses: landscapes, gradients, risks."""
