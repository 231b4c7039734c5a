"""All claims, in their order; one file for each subject."""

from workbench.claims.checks import averages, cost, counted, labels, noise, ranking, smoothing
from workbench.claims.claim import Claim

_LISTED = (averages, cost, counted, labels, noise, ranking, smoothing)
CLAIMS: tuple[Claim, ...] = tuple(
    sorted((claim for part in _LISTED for claim in part.CLAIMS), key=lambda claim: claim.number)
)
