"""Networks: backbones, pretrained weights, and the heads that losses need. Declarations load no torch.

`BACKBONES` lists the backbones. One more is a function of the input shape under `@backbone(...)` in `backbones.py` and a
place in the tuple of `by_name.py`: the command line, the errors and the contract tests take it up.
"""

from workbench.networks.base import Backbone
from workbench.networks.by_name import BACKBONES

__all__ = ["BACKBONES", "Backbone"]
