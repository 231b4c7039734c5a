"""Many heads at once: stacked weights, and one step for all of them."""
