"""Many small photographs as one picture, so that a page loads one file and shows any of them."""

from __future__ import annotations

import base64
import io

import numpy as np

from workbench.tables.checks import array_of


def as_photos(images: object) -> np.ndarray:
    """Images as bytes (n, height, width, 3): grey ones become grey colours, floats in [0, 1] become 0 to 255."""
    photos = array_of(images)
    if photos.ndim == 3:
        photos = photos[..., None]
    if photos.ndim != 4 or photos.shape[-1] not in (1, 3) or 0 in photos.shape:
        raise ValueError(f"images have shape {photos.shape}; give (n, height, width, 3), or 1 channel for grey")
    if photos.dtype.kind == "f":
        if not (np.isfinite(photos).all() and photos.min() >= 0 and photos.max() <= 1):
            raise ValueError("images of floating-point numbers must lie in [0, 1]; give bytes (uint8) for 0 to 255")
        photos = (255 * photos).round().astype(np.uint8)
    if photos.dtype != np.uint8:
        raise ValueError(f"images are {photos.dtype}; give bytes (uint8), or floats in [0, 1]")
    return np.broadcast_to(photos, (*photos.shape[:3], 3))


def sprite_sheet(images: object, columns: int = 20) -> np.ndarray:
    """The images on one sheet, row by row, `columns` to a row: (rows · height, columns · width, 3) bytes.

    Args:
        images: (n, height, width, channels).

    Image i stands at row i // columns, column i % columns; places that are left over are black.

    >>> sprite_sheet(np.full((3, 8, 6, 3), 255, np.uint8), columns=2).shape
    (16, 12, 3)
    """
    photos = as_photos(images)
    if columns != int(columns) or columns < 1:
        raise ValueError(f"columns = {columns!r}; give a whole number ≥ 1")
    n, height, width, channels = photos.shape
    rows = -(-n // columns)
    sheet = np.zeros((rows * columns, height, width, channels), np.uint8)
    sheet[:n] = photos
    return sheet.reshape(rows, columns, height, width, 3).swapaxes(1, 2).reshape(rows * height, columns * width, 3)


def png(picture: np.ndarray) -> bytes:
    """A picture (height, width, 3) of bytes as the content of a PNG file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture).save(file, format="PNG")
    return file.getvalue()


def data_url(picture: np.ndarray) -> str:
    """A picture as text that stands where a web page expects an address."""
    return "data:image/png;base64," + base64.b64encode(png(picture)).decode()
