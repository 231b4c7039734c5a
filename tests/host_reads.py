"""What would make a GPU wait, counted where there is none."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten
# What must know a value before it goes on: a number for Python, or how large its result is.
READS = {
    aten._local_scalar_dense,
    aten.is_nonzero,
    aten.equal,
    aten.nonzero,
    aten.masked_select,
    aten._unique2,
    aten.unique_dim,
    aten.unique_consecutive,
    aten.repeat_interleave,
    aten.bincount,
}


class _Making(TorchFunctionMode):
    """Notices numbers of Python that become a tensor of another device: they are sent there, and waited for."""

    def __init__(self, found: list[str]) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in (torch.tensor, torch.as_tensor, torch.asarray) and result.device.type != "cpu":
            self.found.append(func.__name__)
        return result


class HostReads(TorchDispatchMode):
    """Finds, by the name of the operation, where a value of the device is asked for, and where a tensor changes its device."""

    def __init__(self, device: str = "cpu") -> None:
        super().__init__()
        self.device, self.found = device, []

    def __enter__(self) -> HostReads:
        self._making = _Making(self.found)
        self._making.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._making.__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name, packet = str(func), func.overloadpacket
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        by_mask = packet in (aten.index, aten.index_put, aten.index_put_) and any(
            each.dtype in (torch.bool, torch.uint8)
            for each in given[1:]
            if packet is aten.index or each is not given[-1]
        )
        devices = {each.device.type for each in given if each.ndim}
        copied = packet in (aten._to_copy, aten.copy_) and isinstance(result, torch.Tensor)
        crossing = len(devices) > 1 or (copied and devices - {result.device.type})
        asked = (packet in READS or by_mask) and any(each.device.type == self.device for each in given)
        if asked or crossing:
            self.found.append(name)
        return result
