"""An example of a Triton kernel for dcpcheck: fused_norm_rope, from its contract (`dcpcheck ops fused_norm_rope`).

One program a token (axis 0) and part of its work (axis 1). Whether this rank owns a token's cache row (its slot is not negative)
decides what goes into the caches, and nothing else: every rank needs every token's K and Q.

fused_norm_rope.json binds the parameters; ../export.py compiles it.
"""

import triton
import triton.language as tl

LEAST_NORMAL = tl.constexpr(1.1754943508222875e-38)  # FLT_MIN
LARGEST_CODE = tl.constexpr(448.0)  # of e4m3
MLA_BF16 = tl.constexpr(0)
MLA_FP8 = tl.constexpr(1)
MLA_FP8_DS = tl.constexpr(2)
LANES = tl.constexpr(128)  # elements of a step that turns pairs: no fewer than a program has threads, so that each is one thread's
TILE = tl.constexpr(128)  # codes of an fp8_ds_mla record that share a scale


@triton.jit
def round_if(wanted, x):
    """x in fp32, rounded to bf16 where wanted."""
    return tl.where(wanted != 0, x.to(tl.bfloat16).to(tl.float32), x)


@triton.jit
def magnitude(x):
    """|x|, and 0 for NaN, which no scale is taken of."""
    return tl.where(x != x, 0.0, tl.abs(x))


@triton.jit
def next_power_of_two(x):
    """The least power of two that is not under x, for x > 0 that is no subnormal number; infinity for infinity."""
    bits = x.to(tl.int32, bitcast=True)
    exponent = (bits >> 23) + tl.where((bits & 0x7FFFFF) != 0, 1, 0)
    return (exponent << 23).to(tl.float32, bitcast=True)


@triton.jit
def e4m3(x, overflow_is_nan, nan_is_clamped):
    """x in fp32 as a code of e4m3; the conversion saturates, and makes a NaN of a NaN."""
    code = x.to(tl.float8e4nv).to(tl.uint8, bitcast=True).to(tl.int32)
    code = tl.where((overflow_is_nan != 0) & (tl.abs(x) > 464.0), 0x7F, code)
    code = tl.where(x != x, tl.where(nan_is_clamped != 0, 0x7E, 0x7F), code)
    return code.to(tl.uint8)


@triton.jit
def rms_rstd(row_ptr, width, eps, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, BLOCK):
        at = start + lanes
        x = tl.load(row_ptr + at, mask=at < width, other=0.0).to(tl.float32)
        squares += x * x
    mean_square = tl.div_rn(tl.sum(squares, 0), width.to(tl.float32))
    return tl.div_rn(1.0, tl.sqrt_rn(mean_square + eps))


@triton.jit
def normed(x, rstd, weight, norm_round):
    return round_if(norm_round, x * rstd) * weight


@triton.jit
def table_row(positions_ptr, token, rows):
    """A token's row in the rope tables. A padding token's position may be any."""
    position = tl.load(positions_ptr + token)
    return tl.minimum(tl.maximum(position, 0), rows - 1)


@triton.jit
def index_key(row_ptr, at, inside, mean, rstd, weight_ptr, bias_ptr, pre_rope_round):
    """Elements `at` of the indexer's key after LayerNorm."""
    x = tl.load(row_ptr + at, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0)
    bias = tl.load(bias_ptr + at, mask=inside, other=0.0)
    return round_if(pre_rope_round, (x - mean) * rstd * weight + bias)


@triton.jit
def turned_index_key(row_ptr, at, width, half, interleaved, table_ptr, mean, rstd, weight_ptr, bias_ptr, pre_rope_round):
    """The same after RoPE of the first 2 * half elements."""
    inside = at < width
    turns = at < 2 * half
    pair = tl.where(interleaved != 0, at // 2, tl.where(at < half, at, at - half))
    is_first = tl.where(interleaved != 0, at % 2 == 0, at < half)
    other = tl.where(interleaved != 0, tl.where(is_first, at + 1, at - 1), tl.where(is_first, at + half, at - half))
    key = index_key(row_ptr, at, inside, mean, rstd, weight_ptr, bias_ptr, pre_rope_round)
    other_key = index_key(row_ptr, other, turns, mean, rstd, weight_ptr, bias_ptr, pre_rope_round)
    cos = tl.load(table_ptr + pair, mask=turns, other=1.0).to(tl.float32)
    sin = tl.load(table_ptr + half + pair, mask=turns, other=0.0).to(tl.float32)
    turned = tl.where(is_first, key * cos - other_key * sin, key * cos + other_key * sin)
    return tl.where(turns, turned, key)


@triton.jit(do_not_specialize=[
    "norm_round", "pre_rope_round", "pre_quant_round", "tile_scale_rule", "overflow_is_nan", "nan_is_clamped", "rope_interleaved",
    "index_rope_interleaved", "has_kv_out", "has_k_pe_out", "has_index_k_out", "mla_inserts", "index_inserts", "max_position",
    "rope_half", "index_rope_half", "mla_block_size", "index_block_size"
])
def fused_norm_rope(
        positions_ptr, max_position,
        q_ptr, q_stride, q_weight_ptr, q_out_ptr, q_out_stride, q_width, q_eps,
        kv_ptr, kv_stride, kv_weight_ptr, kv_out_ptr, kv_out_stride, has_kv_out, kv_width, kv_eps,
        k_pe_ptr, k_pe_stride, k_pe_out_ptr, k_pe_out_stride, has_k_pe_out, cos_sin_ptr, rope_half, rope_interleaved,
        mla_ptr, mla_scales_ptr, mla_rope_ptr, mla_scale_ptr, slot_ptr, mla_inserts, mla_block_size, mla_block_stride, mla_record,
        tile_scale_rule,
        index_ptr, index_stride, index_weight_ptr, index_bias_ptr, index_out_ptr, index_out_stride, has_index_k_out, index_width,
        index_eps, index_cos_sin_ptr, index_rope_half, index_rope_interleaved,
        index_codes_ptr, index_scales_ptr, index_slot_ptr, index_inserts, index_block_size, index_block_stride,
        topk_ptr, topk_stride, topk_step, topk_width,
        norm_round, pre_rope_round, pre_quant_round, overflow_is_nan, nan_is_clamped,
        MLA_LAYOUT: tl.constexpr, BLOCK: tl.constexpr, KV_BLOCK: tl.constexpr):
    """Strides and offsets of caches in bytes, all others in elements. A pointer is None, and folded, where a variant has none."""
    token = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    lanes = tl.arange(0, BLOCK)

    if part == 0:
        q_row = q_ptr + token * q_stride
        q_rstd = rms_rstd(q_row, q_width, q_eps, BLOCK)
        for start in range(0, q_width, BLOCK):
            at = start + lanes
            x = tl.load(q_row + at, mask=at < q_width, other=0.0).to(tl.float32)
            weight = tl.load(q_weight_ptr + at, mask=at < q_width, other=0.0).to(tl.float32)
            y = normed(x, q_rstd, weight, norm_round)
            tl.store(q_out_ptr + token * q_out_stride + at, y.to(tl.bfloat16), mask=at < q_width)

    if part == 1:
        slot = tl.load(slot_ptr + token, mask=mla_inserts != 0, other=-1)
        owned = slot >= 0
        record = slot // mla_block_size * mla_block_stride + slot % mla_block_size * mla_record
        kv_lanes = tl.arange(0, KV_BLOCK)
        kv_row = kv_ptr + token * kv_stride
        kv_rstd = rms_rstd(kv_row, kv_width, kv_eps, BLOCK)
        for start in range(0, kv_width, KV_BLOCK):
            at = start + kv_lanes
            inside = at < kv_width
            x = tl.load(kv_row + at, mask=inside, other=0.0).to(tl.float32)
            weight = tl.load(kv_weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
            y = normed(x, kv_rstd, weight, norm_round)
            quantised = round_if(pre_quant_round, y)
            if MLA_LAYOUT == MLA_BF16:
                tl.store(mla_ptr + record // 2 + at, y.to(tl.bfloat16), mask=inside & owned)
            if MLA_LAYOUT == MLA_FP8:
                code = e4m3(tl.div_rn(quantised, tl.load(mla_scale_ptr)), overflow_is_nan, nan_is_clamped)
                tl.store(mla_ptr + record + at, code, mask=inside & owned)
            if MLA_LAYOUT == MLA_FP8_DS:
                amax = tl.max(tl.where(inside, magnitude(quantised), 0.0), 0)
                by_division = tl.div_rn(amax, LARGEST_CODE)
                scale = tl.where(tile_scale_rule == 1, amax * (1.0 / 448.0), by_division)
                scale = tl.maximum(scale, LEAST_NORMAL)
                scale = tl.where(tile_scale_rule == 2, next_power_of_two(tl.maximum(by_division, 1e-4)), scale)
                code = e4m3(tl.div_rn(quantised, scale), overflow_is_nan, nan_is_clamped)
                tl.store(mla_ptr + record + at, code, mask=inside & owned)
                tl.store(mla_scales_ptr + record // 4 + start // TILE, scale, mask=owned)
            tl.store(kv_out_ptr + token * kv_out_stride + at, y.to(tl.bfloat16), mask=inside & (has_kv_out != 0))

        pairs = tl.arange(0, LANES)
        if rope_half > 0:
            table = cos_sin_ptr + table_row(positions_ptr, token, max_position) * 2 * rope_half
            for start in range(0, rope_half, LANES):
                pair = start + pairs
                inside = pair < rope_half
                first = tl.where(rope_interleaved != 0, 2 * pair, pair)
                second = tl.where(rope_interleaved != 0, 2 * pair + 1, pair + rope_half)
                x0 = tl.load(k_pe_ptr + token * k_pe_stride + first, mask=inside, other=0.0).to(tl.float32)
                x1 = tl.load(k_pe_ptr + token * k_pe_stride + second, mask=inside, other=0.0).to(tl.float32)
                cos = tl.load(table + pair, mask=inside, other=1.0).to(tl.float32)
                sin = tl.load(table + rope_half + pair, mask=inside, other=0.0).to(tl.float32)
                y0 = x0 * cos - x1 * sin
                y1 = x1 * cos + x0 * sin
                # The output may lie on the input: a pair is one thread's, and read before it is written.
                k_pe_out = k_pe_out_ptr + token * k_pe_out_stride
                tl.store(k_pe_out + first, y0.to(tl.bfloat16), mask=inside & (has_k_pe_out != 0))
                tl.store(k_pe_out + second, y1.to(tl.bfloat16), mask=inside & (has_k_pe_out != 0))
                if MLA_LAYOUT == MLA_FP8:
                    scale = tl.load(mla_scale_ptr)
                    code0 = e4m3(tl.div_rn(round_if(pre_quant_round, y0), scale), overflow_is_nan, nan_is_clamped)
                    code1 = e4m3(tl.div_rn(round_if(pre_quant_round, y1), scale), overflow_is_nan, nan_is_clamped)
                    tl.store(mla_rope_ptr + record + first, code0, mask=inside & owned)
                    tl.store(mla_rope_ptr + record + second, code1, mask=inside & owned)
                else:
                    tl.store(mla_rope_ptr + record // 2 + first, y0.to(tl.bfloat16), mask=inside & owned)
                    tl.store(mla_rope_ptr + record // 2 + second, y1.to(tl.bfloat16), mask=inside & owned)

    if index_ptr is not None:
        if part == 2:
            index_slot = tl.load(index_slot_ptr + token, mask=index_inserts != 0, other=-1)
            index_owned = index_slot >= 0
            index_row = index_ptr + token * index_stride
            sums = tl.zeros([BLOCK], tl.float32)
            for start in range(0, index_width, BLOCK):
                at = start + lanes
                sums += tl.load(index_row + at, mask=at < index_width, other=0.0).to(tl.float32)
            mean = tl.div_rn(tl.sum(sums, 0), index_width.to(tl.float32))
            squares = tl.zeros([BLOCK], tl.float32)
            for start in range(0, index_width, BLOCK):
                at = start + lanes
                x = tl.load(index_row + at, mask=at < index_width, other=0.0).to(tl.float32)
                squares += tl.where(at < index_width, (x - mean) * (x - mean), 0.0)
            variance = tl.div_rn(tl.sum(squares, 0), index_width.to(tl.float32))
            rstd = tl.div_rn(1.0, tl.sqrt_rn(variance + index_eps))
            index_table = index_cos_sin_ptr
            if index_rope_half > 0:
                index_table += table_row(positions_ptr, token, max_position) * 2 * index_rope_half

            largest = tl.zeros([BLOCK], tl.float32)
            for start in range(0, index_width, BLOCK):
                at = start + lanes
                key = turned_index_key(index_row, at, index_width, index_rope_half, index_rope_interleaved, index_table, mean, rstd,
                                       index_weight_ptr, index_bias_ptr, pre_rope_round)
                tl.store(index_out_ptr + token * index_out_stride + at, key.to(tl.bfloat16),
                         mask=(at < index_width) & (has_index_k_out != 0))
                key = round_if(pre_quant_round, key)
                largest = tl.maximum(largest, tl.where(at < index_width, magnitude(key), 0.0))
            index_scale = next_power_of_two(tl.div_rn(tl.maximum(tl.max(largest, 0), 1e-4), LARGEST_CODE))
            index_block = index_slot // index_block_size * index_block_stride
            row = index_slot % index_block_size
            for start in range(0, index_width, BLOCK):
                at = start + lanes
                key = turned_index_key(index_row, at, index_width, index_rope_half, index_rope_interleaved, index_table, mean, rstd,
                                       index_weight_ptr, index_bias_ptr, pre_rope_round)
                key = round_if(pre_quant_round, key)
                code = e4m3(tl.div_rn(key, index_scale), overflow_is_nan, nan_is_clamped)
                tl.store(index_codes_ptr + index_block + row * index_width + at, code, mask=(at < index_width) & index_owned)
            tl.store(index_scales_ptr + index_block // 4 + row, index_scale, mask=index_owned)

        if part == 3:
            for start in range(0, topk_width, BLOCK):
                at = start + lanes
                tl.store(topk_ptr + token * topk_stride + at * topk_step, -1, mask=at < topk_width)
