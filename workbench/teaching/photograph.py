"""A photograph of the garden, drawn for a lesson."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from workbench.datasets.plants.garden import Garden

SIDE = 240  # pixels; the garden's own photographs are smaller


def photograph(garden: Garden, look: np.ndarray, seed: int = 0) -> str:
    """A photograph of the forms in a look, as text that stands where a page expects an address."""
    from PIL import Image

    from workbench.datasets.plants.photographs import photographs

    (pixels,) = photographs([garden.scene(look, np.random.default_rng(0))], (seed,))
    content = io.BytesIO()
    Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.LANCZOS).save(content, "WEBP", quality=85)
    return f"data:image/webp;base64,{base64.b64encode(content.getvalue()).decode()}"
