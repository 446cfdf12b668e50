"""Memory that a kernel's wrapper asks PyTorch for, filled so that it shows where nobody wrote."""

import contextlib


@contextlib.contextmanager
def poisoned(launch):
    """While it lasts, torch.empty and its kin give memory full of a pattern, another one in the launch's second run.

    For a wrapper that allocates its outputs by itself: what it copies out of them without having written it then differs
    between the two runs that dcpcheck makes of each case, and is told as memory that nobody wrote. Nothing of this is
    seen where memory is asked for in C++.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    factories = {
        torch.empty,
        torch.empty_like,
        torch.empty_strided,
        torch.Tensor.new_empty,
        torch.Tensor.new_empty_strided,
    }
    # NaNs of bf16 and fp32, as dcpcheck's own poison; the second is the first one's complement.
    low, high = (0xFE, 0x7F) if launch.number % 2 == 0 else (0x01, 0x80)

    class Poison(TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), keywords=None):
            made = function(*arguments, **(keywords or {}))
            if function in factories and made.device.type != "meta":
                whole = torch.empty(0, dtype=torch.uint8, device=made.device).set_(made.untyped_storage())
                whole[0::2] = low
                whole[1::2] = high
            return made

    with Poison():
        yield
