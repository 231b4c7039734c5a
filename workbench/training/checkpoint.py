"""The checkpoint of a run that is being trained: one file, which begins with the SHA-256 of the rest."""

from __future__ import annotations

import contextlib
import hashlib
import io
from pathlib import Path
from typing import Any

import torch

from workbench.store import Store

DIGEST_BYTES = hashlib.sha256().digest_size


def write_checkpoint(content: dict[str, Any], path: Path, store: Store) -> None:
    """Writes tensors, numbers and text in dicts and lists; the file is there whole or not at all."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    body = buffer.getbuffer()
    with store.replacing(path, DIGEST_BYTES + len(body)) as aside, aside.open("wb") as file:
        file.write(hashlib.sha256(body).digest())
        file.write(body)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The content of a checkpoint; ValueError if a bit of it has changed."""
    content = memoryview(path.read_bytes())
    digest, body = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        raise ValueError("it does not match its checksum")
    found: dict[str, Any] = torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)
    return found


def past_epochs(path: Path) -> list[dict[str, float]]:
    """The history in a checkpoint, empty without one that can be read: training reports damage when it starts anew."""
    past: list[dict[str, float]] = []
    with contextlib.suppress(Exception):  # torch raises many kinds
        past = read_checkpoint(path)["history"]
    return past
