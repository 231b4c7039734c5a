"""The browser component: what moves with a slider while it moves."""

from live.live import (
    Card,
    Number,
    Slider,
    SuggestedClass,
    Suggestion,
    cards,
    drawing,
    figure,
    prepared,
    prepared_drawing,
    sliders,
    suggestions,
)

__all__ = [
    "Card",
    "Number",
    "Slider",
    "SuggestedClass",
    "Suggestion",
    "cards",
    "drawing",
    "figure",
    "prepared",
    "prepared_drawing",
    "sliders",
    "suggestions",
]
