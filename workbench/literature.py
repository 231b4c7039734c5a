"""The papers whose losses, tables and claims are here: how they are called → who wrote what."""

from __future__ import annotations

# Short citation → full one. A loss names the short one.
PAPERS = {
    "Garcin et al. 2022": "C. Garcin, M. Servajean, A. Joly, J. Salmon. Stochastic smoothing of the top-K calibrated hinge "
    "loss for deep imbalanced classification. ICML 2022",
    "Garcin et al. 2023": "C. Garcin, M. Servajean, A. Joly, J. Salmon. A two-head loss function for deep average-K "
    "classification. 2023",
    "Petersen et al. 2022": "F. Petersen, H. Kuehne, C. Borgelt, O. Deussen. Differentiable top-k classification learning. "
    "ICML 2022",
    "Liao et al.": "S. Liao, E. Gavves, C. Oh, C. Snoek. Quasibinary classifier for images with zero and multiple labels",
    "Garcin, thesis": "C. Garcin. PhD thesis on set-valued classification and Pl@ntNet-300K, Université de Montpellier, 2023",
}
