"""What an array or a column may be called. The first name is ours."""

from __future__ import annotations

PROBABILITIES = ("probabilities", "probs", "proba", "prob", "predict_proba", "y_prob", "y_proba", "softmax")
LOGITS = ("scores", "logits", "score", "logit", "logp", "log_probabilities", "outputs", "output")
SCORES = (*LOGITS[:2], *PROBABILITIES, *LOGITS[2:], "predictions", "preds", "y_pred", "y_score")
LABELS = ("labels", "label", "y", "y_true", "target", "targets", "truth")
CLASS_NAMES = ("class_names", "classes", "names", "species")
IDS = ("ids", "id")
FURTHER = ("groups", "class_counts", "posterior", "votes", "features", "images")
LINK = ("link", "link_constant")
