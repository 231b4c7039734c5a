"""Cuts the small files beside this one out of the full ones: `python tests/data/cut.py FOLDER_OF_NPZ FOLDER_OF_FASHION_MNIST`."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
# name: the arrays that are kept, and how each is cut. Rows of CIFAR-100 are sorted by class, and of each class five stay.
CUTS = {
    "cifar100_resnets_logits": {
        "logits": np.s_[:, ::20],
        "models": np.s_[:],
        "y": np.s_[::20],
        "classes": np.s_[:],
        "superclass": np.s_[:],
        "superclasses": np.s_[:],
    },
    "cifar10_models_logp": {"logp": np.s_[:4, ::20], "models": np.s_[:4], "y": np.s_[::20], "classes": np.s_[:]},
    "cifar10h_counts": {"counts": np.s_[::20], "y": np.s_[::20], "classes": np.s_[:]},
    "letter_recognition": {"X": np.s_[:400], "y": np.s_[:400], "classes": np.s_[:]},
    "ml_emotions": {"X": np.s_[::2], "Y": np.s_[::2], "labels": np.s_[:]},
    "news20_cv_probs": {"logp": np.s_[::8], "y": np.s_[::8]},
    "plantnet300k_meta": {
        name: np.s_[:] for name in ("species", "species_id", "genus", "genera", "approx_sorted_counts")
    },
}
CLOTHES = {"train": 200, "t10k": 100}  # the first images: by its first labels Fashion-MNIST is known


def cut_arrays(source: Path) -> None:
    for name, arrays in CUTS.items():
        with np.load(source / f"{name}.npz", allow_pickle=False) as full:
            np.savez_compressed(HERE / f"{name}.npz", **{part: full[part][cut] for part, cut in arrays.items()})


def cut_clothes(source: Path) -> None:
    for prefix, n in CLOTHES.items():
        for kind, head, size in (("images-idx3", 16, 28 * 28), ("labels-idx1", 8, 1)):
            name = f"{prefix}-{kind}-ubyte.gz"
            content = gzip.decompress((source / name).read_bytes())
            cut = content[:4] + n.to_bytes(4, "big") + content[8 : head + n * size]
            (HERE / "fashion-mnist").mkdir(exist_ok=True)
            (HERE / "fashion-mnist" / name).write_bytes(gzip.compress(cut, mtime=0))


def score_drawings(source: Path) -> None:
    """What the published network says of fifty drawings in the precision in which it was published."""
    from workbench.datasets.symbols import Symbols
    from workbench.drawings import drawing_from_text, inputs

    split = Symbols(n_train=200, n_val=1, n_test=50).dataset().test
    strokes = split.strokes.tolist()
    values = inputs([drawing_from_text(text) for text in strokes])
    with np.load(source / "symbols_mlp.npz", allow_pickle=False) as full:
        for j in (0, 1):
            values = 1 / (1 + np.exp(-(values @ full[f"W{j}"].astype(float) + full[f"b{j}"])))
        scores = values @ full["W2"].astype(float) + full["b2"]
    np.savez_compressed(HERE / "drawn_symbols.npz", strokes=np.array(strokes), scores=scores.astype(np.float32))


if __name__ == "__main__":
    cut_arrays(Path(sys.argv[1]))
    cut_clothes(Path(sys.argv[2]))
    score_drawings(Path(sys.argv[1]))
