"""Records the sets of TorchCP 1.2.1 on the newsgroups of `tests/data`, for `tests/peers/test_torchcp.py`.

    pip install --no-deps --target FOLDER torchcp==1.2.1
    python benchmarks/record_torchcp.py FOLDER

Of each predictor: its thresholds, and its sets as bits. Nothing is randomised. The first half of the rows calibrates.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torchcp_package import load

DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
ALPHA = 0.1863  # no (n + 1)·(1 − α) is whole, where rounding would decide
N_CLUSTERS = 3


class Given(torch.nn.Module):
    """A model whose inputs are its scores; TorchCP asks for the device of its parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.nothing = torch.nn.Parameter(torch.zeros(()))

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return scores


def main() -> None:
    warnings.simplefilter("ignore")
    predictor, score = load(sys.argv[1])
    with np.load(DATA / "news20_cv_probs.npz") as real:
        logits, labels = torch.from_numpy(real["logp"].astype(np.float64)), torch.from_numpy(real["y"].astype(np.int64))
    half = len(labels) // 2
    val, y, test = logits[:half], labels[:half], logits[half:]
    recorded: dict[str, np.ndarray] = {}

    def keep(name: str, thresholds: Any, sets: torch.Tensor) -> None:
        recorded[f"{name} threshold"] = np.asarray(thresholds, dtype=np.float64)
        recorded[f"{name} sets"] = np.packbits(sets.numpy(), axis=1)

    scores = {
        "LAC": score.LAC(),
        "APS": score.APS(randomized=False),
        "RAPS": score.RAPS(randomized=False, penalty=0.05, kreg=2),
        "SAPS": score.SAPS(randomized=False, weight=0.15),
        "Margin": score.Margin(),
        "Rank": score.TOPK(randomized=False),
    }
    for name, of_score in scores.items():
        split = predictor.SplitPredictor(of_score, alpha=ALPHA)
        split.calculate_threshold(val.clone(), y, ALPHA)
        keep(name, split.q_hat, split.predict_with_logits(test.clone()))
        # The scores of labels taken from those of all classes: of SAPS they are others (see the test).
        of_labels = of_score(val.clone())[torch.arange(half), y]
        limit = split._calculate_conformal_value(of_labels, ALPHA)
        keep(f"{name} of all", limit, split.predict_with_logits(test.clone(), limit))
    for name in ("LAC", "APS"):
        by_class = predictor.ClassConditionalPredictor(scores[name], alpha=ALPHA)
        by_class.calculate_threshold(val.clone(), y, ALPHA)
        keep(f"class-conditional {name}", by_class.q_hat, by_class.predict_with_logits(test.clone()))
        rc3p = predictor.RC3PPredictor(scores[name], alpha=ALPHA)
        rc3p.num_classes = logits.shape[1]
        rc3p.calculate_threshold(val.clone(), y, ALPHA)
        keep(f"RC3P {name}", rc3p.class_thresholds, rc3p.predict_with_logits(test.clone()))
        recorded[f"RC3P {name} ranks"] = rc3p.class_rank_limits.numpy()
    clustered = predictor.ClusteredPredictor(
        scores["LAC"], alpha=ALPHA, num_clusters=N_CLUSTERS, ratio_clustering=0.5, split="doubledip"
    )
    clustered.calculate_threshold(val.clone(), y, ALPHA)
    keep("clustered", clustered.q_hat, clustered.predict_with_logits(test.clone()))
    recorded["clusters"] = clustered.cluster_assignments.numpy()
    for name, weigh in (
        ("equal weights", lambda rows: torch.ones(len(rows), dtype=rows.dtype)),
        ("weights", lambda rows: rows[:, 0].exp() + 0.1),
    ):
        weighted = predictor.WeightedPredictor(scores["LAC"], Given(), image_encoder=torch.nn.Identity())
        weighted.calculate_threshold(val.clone(), y, ALPHA)
        weighted.IW, weighted.w_sorted = weigh, weigh(val).sort()[0]
        keep(name, weighted.alpha, weighted.predict(test.clone()))
    np.savez_compressed(DATA / "torchcp_sets.npz", alpha=ALPHA, **recorded)


if __name__ == "__main__":
    main()
