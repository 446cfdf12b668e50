"""An example of a kernel for dcpcheck: fused_norm_rope as PyTorch operations, on the GPU or on the host.

    PYTHONPATH=harness/adapters/python dcpcheck run --backend cuda \
        --kernel 'exec:python3 harness/adapters/examples/torch/fused_norm_rope.py' corpora/issue-54907
"""

import torch

import dcpcheck

E4M3_MAX = 448.0
TILE = 128  # elements of fp8_ds_mla that have a scale in common


def round_if(wanted, x):
    return x.to(torch.bfloat16).to(torch.float32) if wanted else x


def rms_norm(x, weight, eps, rounded):
    x = x.to(torch.float32)
    rstd = 1 / torch.sqrt((x * x).sum(-1, keepdim=True) / x.shape[-1] + eps)
    return round_if(rounded, x * rstd) * weight.to(torch.float32)


def layer_norm(x, weight, bias, eps):
    x = x.to(torch.float32)
    centred = x - x.sum(-1, keepdim=True) / x.shape[-1]
    rstd = 1 / torch.sqrt((centred * centred).sum(-1, keepdim=True) / x.shape[-1] + eps)
    return centred * rstd * weight + bias


def rope(x, table, positions, interleaved):
    """Turns the first table.shape[1] elements of each row; the others stay."""
    x = x.to(torch.float32)
    width = table.shape[1]
    half = width // 2
    row = table[positions.clamp(0, table.shape[0] - 1)].to(torch.float32)
    cos, sin = row[:, :half], row[:, half:]
    even, odd = (slice(0, width, 2), slice(1, width, 2)) if interleaved else (slice(0, half), slice(half, width))
    turned = x.clone()
    turned[:, even] = x[:, even] * cos - x[:, odd] * sin
    turned[:, odd] = x[:, odd] * cos + x[:, even] * sin
    return turned


def power_of_two(x):
    """The least one that is not below x."""
    mantissa, exponent = torch.frexp(x)
    power = torch.ldexp(torch.ones_like(x), exponent - (mantissa == 0.5).to(exponent.dtype))
    return torch.where(x.isinf(), x, power)


def largest_magnitude(x):
    """Of each row, a NaN left out."""
    return x.abs().nan_to_num(nan=0.0, posinf=torch.inf).amax(-1)


def over_largest_code(x):
    """x / 448, correctly rounded: by a number of Python's, PyTorch would multiply by the reciprocal on the GPU."""
    return x / torch.full_like(x, E4M3_MAX)


def tile_scale(amax, rule):
    if rule == "pow2":
        return power_of_two(torch.clamp(over_largest_code(amax), min=1e-4))
    quotient = over_largest_code(amax) if rule == "fp32_div" else amax * over_largest_code(torch.ones_like(amax))
    return torch.clamp(quotient, min=torch.finfo(torch.float32).tiny)


def quantise(x, launch):
    """To e4m3, as bytes. PyTorch makes NaN of what is past 464, and of NaN."""
    if launch.option("nan") == "clamp":
        x = torch.where(x.isnan(), E4M3_MAX, x)
    if launch.option("e4m3_overflow") == "saturate":
        x = x.clamp(-E4M3_MAX, E4M3_MAX)
    return x.to(torch.float8_e4m3fn).view(torch.uint8)


def as_bytes(x):
    return x.contiguous().view(torch.uint8)


def put(cache, slots, offset_of_row, parts):
    """Writes rows of bytes at offset_of_row(row in its block) of the blocks that the slots name; negative slots: nowhere."""
    owned = slots >= 0
    block, row = slots[owned] // cache.shape[1], slots[owned] % cache.shape[1]
    flat = cache.bytes_as_torch()
    for part, offset in zip(parts, offset_of_row(row)):
        part = part[owned]
        begin = block * cache.strides[0] + offset
        flat[begin[:, None] + torch.arange(part.shape[1], device=flat.device)] = part


def mla_records(launch, kv, k_pe):
    rounded = launch.option("pre_quant_round") == "bf16"
    if launch.scalar("mla_layout") == "bf16":
        return torch.cat([as_bytes(kv.to(torch.bfloat16)), as_bytes(k_pe.to(torch.bfloat16))], dim=1)
    if launch.scalar("mla_layout") == "fp8":
        values = round_if(rounded, torch.cat([kv, k_pe], dim=1))
        return quantise(values / launch["mla_scale"].as_torch(), launch)
    tiles = round_if(rounded, kv).reshape(len(kv), -1, TILE)
    scales = tile_scale(largest_magnitude(tiles), launch.option("tile_scale"))
    codes = quantise(tiles / scales[:, :, None], launch).reshape(len(kv), -1)
    return torch.cat([codes, as_bytes(scales), as_bytes(k_pe.to(torch.bfloat16))], dim=1)


def keys(launch, positions):
    kv = rms_norm(
        launch["kv_c"].as_torch(), launch["kv_weight"].as_torch(), launch.scalar("kv_eps"), launch.option("norm_round") == "bf16"
    )
    if "k_pe" in launch:
        table = launch["cos_sin_cache"].as_torch()
        k_pe = rope(launch["k_pe"].as_torch(), table, positions, launch.scalar("rope_interleaved"))
    else:
        k_pe = kv[:, :0]
    if "mla_cache" in launch and "slot_mapping" in launch:
        cache = launch["mla_cache"]
        records = mla_records(launch, kv, k_pe)
        put(cache, launch["slot_mapping"].as_torch(), lambda row: [row * cache.strides[1]], [records])
    # A negative slot keeps a row out of this rank's cache, and out of nothing else: every rank needs these rows.
    if "kv_c_out" in launch:
        launch["kv_c_out"].as_torch().copy_(kv)
    if "k_pe_out" in launch:
        launch["k_pe_out"].as_torch().copy_(k_pe)


def indexer(launch, positions):
    launch["topk_indices"].as_torch()[: launch.scalar("T")] = -1
    key = layer_norm(
        launch["index_k"].as_torch(),
        launch["index_weight"].as_torch(),
        launch["index_bias"].as_torch(),
        launch.scalar("index_eps"),
    )
    key = round_if(launch.option("pre_rope_round") == "bf16", key)
    if "index_cos_sin_cache" in launch:
        table = launch["index_cos_sin_cache"].as_torch()
        key = rope(key, table, positions, launch.scalar("index_rope_interleaved"))
    if "index_k_out" in launch:
        launch["index_k_out"].as_torch().copy_(key)
    if "indexer_cache" in launch and "index_slot_mapping" in launch:
        key = round_if(launch.option("pre_quant_round") == "bf16", key)
        scales = power_of_two(over_largest_code(torch.clamp(largest_magnitude(key)[:, None], min=1e-4)))
        codes = quantise(key / scales, launch)
        cache = launch["indexer_cache"]
        width = key.shape[1]
        # A block has all its codes first, then all its scales.
        places = lambda row: [row * width, cache.shape[1] * width + row * 4]
        put(cache, launch["index_slot_mapping"].as_torch(), places, [codes, as_bytes(scales)])


def run(launch):
    if launch.scalar("T") == 0:
        return
    positions = launch["positions"].as_torch()
    q_c = launch["q_c"].as_torch()
    q = rms_norm(q_c, launch["q_weight"].as_torch(), launch.scalar("q_eps"), launch.option("norm_round") == "bf16")
    launch["q_c_out"].as_torch().copy_(q)
    keys(launch, positions)
    if launch.scalar("indexer"):
        indexer(launch, positions)


if __name__ == "__main__":
    dcpcheck.serve(
        op="fused_norm_rope",
        run=run,
        name="fused_norm_rope example in PyTorch",
        doc="One PyTorch operation after another.",
        devices=["host", "cuda"],
        options={
            "norm_round": ["none", "bf16"],
            "pre_rope_round": ["none", "bf16"],
            "pre_quant_round": ["none", "bf16"],
            "division": ["rn", "full"],
            "e4m3_overflow": ["saturate", "nan"],
            "nan": ["0x7F", "clamp"],
            "tile_scale": ["fp32_div", "fp32_mul", "pow2"],
            "k_outputs": ["separate", "in_place"],
            "index_k_out": ["always", "without_slots"],
            "padding_positions": ["in_range", "any"],
        },
    )
