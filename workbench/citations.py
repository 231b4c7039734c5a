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
    "Ding et al. 2025": "T. Ding, J.-B. Fermanian, J. Salmon. Conformal prediction for long-tailed classification. 2025, "
    "arXiv 2507.06867",
    "Garcin, thesis": "C. Garcin. PhD thesis on set-valued classification and Pl@ntNet-300K, Université de Montpellier, 2023",
    "Menon et al. 2021": "A. K. Menon, S. Jayasumana, A. S. Rawat, H. Jain, A. Veit, S. Kumar. Long-tail learning via logit "
    "adjustment. ICLR 2021",
    "Stutz et al. 2022": "D. Stutz, K. Dvijotham, A. T. Cemgil, A. Doucet. Learning optimal conformal classifiers. ICLR 2022",
    "Cortes et al. 2024": "C. Cortes, A. Mao, C. Mohri, M. Mohri, Y. Zhong. Cardinality-aware set prediction and top-k "
    "classification. NeurIPS 2024",
}
