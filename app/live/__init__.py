"""The browser component: what moves with a slider while it moves."""

from live.live import (
    AnswerLine,
    Card,
    Number,
    Slider,
    Suggestion,
    answer,
    cards,
    drawing,
    figure,
    prepared,
    prepared_drawing,
    sliders,
)

__all__ = [
    "AnswerLine",
    "Card",
    "Number",
    "Slider",
    "Suggestion",
    "answer",
    "cards",
    "drawing",
    "figure",
    "prepared",
    "prepared_drawing",
    "sliders",
]
