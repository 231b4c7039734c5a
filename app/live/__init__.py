"""The browser component: what moves with a slider while it moves."""

from live.live import (
    Card,
    Followed,
    Number,
    Slider,
    SuggestedClass,
    Suggestion,
    cards,
    drawing,
    figure,
    prepared,
    prepared_drawing,
    prepared_film,
    side_by_side,
    sliders,
    suggestions,
    table,
)

__all__ = [
    "Card",
    "Followed",
    "Number",
    "Slider",
    "SuggestedClass",
    "Suggestion",
    "cards",
    "drawing",
    "figure",
    "prepared",
    "prepared_drawing",
    "prepared_film",
    "side_by_side",
    "sliders",
    "suggestions",
    "table",
]
