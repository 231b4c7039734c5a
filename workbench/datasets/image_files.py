"""Images that are read from their files on first use."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from workbench.untrusted_files import open_regular

VERSION = 1  # of the way images are cut: another way makes other data, which must have another key
HEAD = 64 * 1024  # bytes of each file that its fingerprint reads
FILES_AT_ONCE = 1000  # that one thread fingerprints
# That decode. Pillow lets go of Python's lock while it does, and processes, which would have to be sent the pixels, were
# measured to be no quicker.
THREADS = os.cpu_count() or 1
BATCHES_AHEAD = 2  # that are decoded while the network is busy with another
CENTRE = (0.5, 0.5)
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")  # that Pillow decodes itself, without another program
MOST_PIXELS = 2**25  # of an image as it is decoded; a JPEG may have 64 times as many


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Images in files, as an array that is read when it is indexed: uint8 (n, size, size, 3).

    Of each image, made so small that its shorter side is `resize` pixels long, a square of `size` pixels is cut out: the
    one in the middle, or, in training, one at a random place (Garcin, thesis, section 3.3.2: 256, 224, and random
    crops). `files` are paths relative to `root`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> Image.new("RGB", (40, 30), "red").save(folder / "rose.png")
    >>> images = ImageFiles(folder, np.array(["rose.png"], dtype=object), size=24, resize=30)
    >>> images.shape, images[0].shape
    ((1, 24, 24, 3), (24, 24, 3))
    """

    root: Path
    files: np.ndarray  # (n,) of str
    size: int = 224
    resize: int = 256

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.resize:
            raise ValueError(
                f"size = {self.size} with resize = {self.resize}: the square that is cut out cannot be larger than the "
                "shorter side of the image; give 1 ≤ size ≤ resize"
            )

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return (len(self.files), self.size, self.size, 3)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: Any) -> np.ndarray:
        """The images of a slice, a mask or an array of row numbers, or the image of one row; cut from the middle."""
        chosen = self.files[index]
        if isinstance(chosen, str):
            return self._square(chosen, CENTRE)
        [images] = self.rows(index).batches([slice(None)])
        return images

    def rows(self, index: Any) -> ImageFiles:
        """The chosen rows, still in their files."""
        return replace(self, files=self.files[index])

    def batches(self, batches: Iterable[Any], places: np.ndarray | None = None) -> Iterator[np.ndarray]:
        """The images of each batch of rows in turn, decoded by threads while the caller works on the batch before.

        `places` (n, 2) says where the square of each row of the split lies, from 0 (top, left) to 1 (bottom, right).
        """
        places = np.broadcast_to(CENTRE, (len(self), 2)) if places is None else places
        pool = ThreadPoolExecutor(THREADS, thread_name_prefix="decoding")
        waiting: deque[list[Future[np.ndarray]]] = deque()

        def decoded(futures: list[Future[np.ndarray]]) -> np.ndarray:
            images = np.empty((len(futures), *self.shape[1:]), dtype=self.dtype)
            for image, future in zip(images, futures, strict=True):
                image[...] = future.result()
            return images

        try:
            for rows in batches:
                chosen = zip(self.files[rows], places[rows], strict=True)
                waiting.append([pool.submit(self._square, file, place) for file, place in chosen])
                if len(waiting) > BATCHES_AHEAD:
                    yield decoded(waiting.popleft())
            while waiting:
                yield decoded(waiting.popleft())
        finally:
            pool.shutdown(cancel_futures=True)

    def digest(self) -> str:
        """The sha256 of the name, the size and the first 64 kB of every file, and of the way images are cut.

        Reading all of 300 000 photographs at each start would take minutes. Two images that agree in all this and are
        not the same would have to differ only far inside files of the same length.
        """
        total = hashlib.sha256(f"images {VERSION} {self.size} {self.resize}".encode())
        parts = [self.files[start : start + FILES_AT_ONCE] for start in range(0, len(self), FILES_AT_ONCE)]
        with ThreadPoolExecutor(THREADS) as pool:
            for part in pool.map(self._fingerprint, parts):
                total.update(part)
        return total.hexdigest()

    def _fingerprint(self, files: np.ndarray) -> bytes:
        found = hashlib.sha256()
        for name in files:
            try:
                with open_regular(self.root / name) as file:
                    head, length = file.read(HEAD), os.fstat(file.fileno()).st_size
            except (OSError, ValueError) as error:  # such as a link to nowhere, or a pipe
                why = getattr(error, "strerror", None) or error
                raise ValueError(f"{self.root / name} cannot be read ({why}); replace it or take it away") from error
            found.update(os.fsencode(name) + b"\0%d\0" % length + hashlib.sha256(head).digest())
        return found.digest()

    def _square(self, file: str, place: Iterable[float]) -> np.ndarray:
        """(size, size, 3): the square at this place of one image."""
        path = self.root / file
        try:
            with open_regular(path) as opened, Image.open(opened, formats=FORMATS) as image:
                # A large JPEG is decoded at a half, a quarter or an eighth, as long as twice the resolution is left.
                image.draft(None, (2 * self.resize, 2 * self.resize))
                if image.width * image.height > MOST_PIXELS:
                    raise ValueError(f"it has {image.width} × {image.height} pixels; at most {MOST_PIXELS} are decoded")
                ImageOps.exif_transpose(image, in_place=True)
                if image.mode[0] in "IF":  # Pillow would clip 16-bit greys at 255
                    raise ValueError(f"its pixels are {image.mode}, not 8-bit")
                # By way of RGBA, because Pillow warns of palettes with transparent colours.
                colours = (image.convert("RGBA") if image.mode == "P" else image).convert("RGB")
        except Exception as error:  # Pillow raises many kinds when it meets a broken file
            raise ValueError(
                f"{path} cannot be read as an image ({type(error).__name__}: {error}); replace it or take it away"
            ) from error
        sides = np.array([colours.height, colours.width])
        side = sides.min() * self.size / self.resize  # of the square, in pixels of the file
        top, left = np.asarray(place) * (sides - side)
        box = (left, top, min(left + side, colours.width), min(top + side, colours.height))
        # Resizing the box alone is cheaper than resizing the image and cutting the box out of it.
        return np.asarray(colours.resize((self.size, self.size), Image.Resampling.BILINEAR, box=box))
