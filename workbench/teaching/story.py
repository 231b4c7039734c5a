"""The photograph and the three species that notebooks and lessons share.

The plants are those of the garden that ships with its runs, so that every page tells of the same ones.
"""

from __future__ import annotations

# Two species of one genus: the same flower and the same bark. Only leaf and fruit tell them apart.
TWINS = ("Auribella matutina", "Auribella pluvialis")
# The only species of its genus: its flower identifies it.
THIRD = "Iridelle tremula"
# The photograph: this row of the test table of the garden's demo runs. It shows a flower alone, of the rarer twin, and every
# answer of one species that follows the probabilities names the other.
PHOTOGRAPH = 81
