"""All claims, in their order; one file for each subject, and three for networks that memorise."""

from workbench.claims.checks import (
    averages,
    cost,
    counted,
    deciding,
    labels,
    long_tail,
    memorising,
    memorising_averages,
    noise,
    ranking,
    smoothing,
)
from workbench.claims.claim import Claim

_LISTED = (
    *(averages, cost, counted, labels, long_tail, noise, ranking, smoothing),
    *(memorising, memorising_averages, deciding),
)
CLAIMS: tuple[Claim, ...] = tuple(
    sorted((claim for part in _LISTED for claim in part.CLAIMS), key=lambda claim: claim.number)
)
