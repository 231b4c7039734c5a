"""Figures of probabilities: are they worth what they say."""
