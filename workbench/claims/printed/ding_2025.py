"""The table of set rules on Pl@ntNet-300K of Ding, Fermanian & Salmon 2025 (arXiv 2507.06867)."""

from __future__ import annotations

from workbench.claims.rule_table import RuleTable
from workbench.claims.table_spec import Column, Part, Row

RULES = {
    "Standard": "LAC(0.9)",
    "Classwise": "ClassConditionalLAC(0.9)",
    "Clustered": "Clustered(0.9)",
    "PAS": "PAS(0.9)",
    "RC3P": "RC3P(0.9)",
    "Interp-Q, τ = 0.9": "InterpQ(0.9, weight=0.9)",
    "Interp-Q, τ = 0.99": "InterpQ(0.9, weight=0.99)",
    "Interp-Q, τ = 0.999": "InterpQ(0.9, weight=0.999)",
    "Fuzzy, σ = 1e-5": "Fuzzy(0.9, bandwidth=1e-5, jitter=0.01)",
    "Fuzzy, σ = 0.01": "Fuzzy(0.9, bandwidth=0.01, jitter=0.01)",
    "Fuzzy, σ = 0.1": "Fuzzy(0.9, bandwidth=0.1, jitter=0.01)",
}
MEASURES = {
    "classes below 50 %": "classes_below_half",
    "undercoverage gap": "undercoverage_gap",
    "macro-coverage": "macro_coverage",
    "coverage": "coverage",
    "mean size": "mean_size",
}

LONG_TAIL = RuleTable(
    name="005 Table Pl@ntNet-300K",
    title="Conformal rules on a long tail: who is covered, at which size (α = 0.1, softmax scores)",
    paper="Ding et al. 2025",
    place="Table Pl@ntNet-300K: metrics at α = 0.1",
    corner="rule",
    rows=tuple(Row(label) for label in RULES),
    columns=tuple(Column(label, (Part("", measure, percent=False),)) for label, measure in MEASURES.items()),
    rules=RULES,
    text="""
    0.389  0.398  0.525  0.907  1.57
    0  0.006  0.976  0.912  780
    0.398  0.406  0.513  0.882  1.57
    0.163  0.186  0.763  0.900  2.60
    0.155  0.178  0.771  0.916  121
    0.248  0.265  0.671  0.901  2.24
    0.151  0.168  0.785  0.905  3.95
    0.098  0.109  0.856  0.908  7.58
    0.129  0.141  0.818  0.904  4.88
    0.227  0.241  0.706  0.907  2.81
    0.297  0.306  0.630  0.906  2.30
    """,
    note="random parts (clusters, held-out rows, moves of classes) are drawn anew, and RC3P takes the smallest rank whose error "
    "is below α, as its paper says, where the authors' code takes the first that does not exceed it",
)

TABLES = (LONG_TAIL,)
