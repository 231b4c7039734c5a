"""Where a run trains, and whether the machine can do what is asked."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def device_named(wanted: str) -> torch.device:
    """The device that `Run.device` asks for."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ValueError("device = 'cuda', but torch sees no GPU on this machine; use device='auto' or 'cpu'")
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")


def check_devices(device: torch.device, devices: int) -> None:
    """Refuses more ranks than there are GPUs. A CPU takes any number."""
    if device.type == "cuda" and devices > (there := torch.cuda.device_count()):
        raise ValueError(
            f"devices = {devices}, but torch sees {there} GPU{'s' * (there > 1)}; use devices={there} or device='cpu'"
        )


def check_bf16(device: torch.device) -> None:
    """Some virtual machines announce matrix instructions and then refuse them: better to say so than to fail inside."""
    block = torch.zeros(64, 256, dtype=torch.bfloat16, device=device)
    try:
        F.linear(block, block)
    except RuntimeError as error:
        raise ValueError(
            f"precision = 'bf16' does not work on this processor ({error}); use precision='32', or start Python with "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in its environment"
        ) from error
