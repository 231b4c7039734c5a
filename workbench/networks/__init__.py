"""Networks: backbones, pretrained weights, and the heads that losses ask for."""
