"""@dcpcheck.capture: what a call was given becomes a case that dcpcheck runs, and the wrapper notices nothing of it."""

import contextlib
import io
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import dcpcheck  # noqa: E402

PROGRAM = os.environ["DCPCHECK_PROGRAM"]
os.environ["DCPCHECK"] = PROGRAM

SIZES = {"b": 1, "B": 1, "H": 2, "f": 4, "i": 4, "q": 8}


class Array:
    """A tensor as NumPy has it, of the standard library: shape, strides in bytes, dtype, memory that may be shared."""

    NAMES = {"B": "uint8", "H": "uint16", "f": "float32", "i": "int32", "q": "int64"}

    def __init__(self, kind, shape, values=None, row_stride=None, memory=None):
        self.kind, self.shape, self.dtype, self.itemsize = kind, tuple(shape), self.NAMES[kind], SIZES[kind]
        dense = [1] * len(shape)
        for axis in range(len(shape) - 2, -1, -1):
            dense[axis] = dense[axis + 1] * shape[axis + 1]
        if row_stride is not None:
            dense[0] = row_stride
        self._elements = dense
        self.strides = tuple(n * self.itemsize for n in dense)
        extent = 1 + sum((n - 1) * stride for n, stride in zip(shape, dense)) if 0 not in shape else 0
        self.memory = memory if memory is not None else bytearray(extent * self.itemsize)
        for i, value in enumerate(values or []):
            struct.pack_into("<" + kind, self.memory, self._place(i), value)

    def _place(self, flat):
        at = 0
        for length, stride in zip(reversed(self.shape), reversed(self.strides)):
            at += flat % length * stride
            flat //= length
        return at

    @property
    def _count(self):
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def __array_interface__(self):
        import ctypes

        return {"data": (ctypes.addressof(ctypes.c_char.from_buffer(self.memory)), False)}

    def tolist(self):
        return [struct.unpack_from("<" + self.kind, self.memory, self._place(i))[0] for i in range(self._count)]

    def tobytes(self):
        return b"".join(struct.pack("<" + self.kind, value) for value in self.tolist())


def arguments(**replaced):
    """A call of fused_norm_rope: 5 tokens, two requests, some slots on other ranks, q_c a slice of a wider tensor."""
    tokens = 5
    call = {
        "positions": Array("q", [tokens], [7, 8, 9, 0, 1]),
        "q_c": Array("H", [tokens, 16], [0x3F80 + i for i in range(tokens * 16)], row_stride=24),
        "q_weight": Array("H", [16], [0x3F80] * 16),
        "kv_c": Array("H", [tokens, 8], [0x3F00 + i for i in range(tokens * 8)]),
        "kv_weight": Array("H", [8], [0x3F80] * 8),
        "k_pe": Array("H", [tokens, 4], [0x4000 + i for i in range(tokens * 4)]),
        "cos_sin_cache": Array("f", [32, 4]),
        "slot_mapping": Array("q", [tokens], [9, -1, 10, -1, 33]),
        "mla_cache": Array("B", [10, 4, 24], row_stride=4 * 24 + 8),
        "q_c_out": Array("H", [tokens, 16]),
        "kv_c_out": Array("H", [tokens, 8]),
        "k_pe_out": None,
        "index_k": None,
        "q_eps": 1e-5,
    }
    call.update(replaced)
    return call


def wrapper(
    positions, q_c, q_weight, kv_c, kv_weight, k_pe, cos_sin_cache, slot_mapping, mla_cache, q_c_out, kv_c_out, k_pe_out, index_k,
    q_eps, explode=False,
):  # fmt: skip
    if explode:
        raise RuntimeError("an illegal memory access was encountered")
    return q_c_out


class CaptureTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def captured(self, **options):
        options = {"folder": self.folder, "params": {"mla_layout": "bf16"}, **options}
        return dcpcheck.capture("fused_norm_rope", **options)(wrapper)

    def cases(self):
        return sorted(pathlib.Path(self.folder).glob("*.json"))

    def run_case(self, path, *words):
        command = [PROGRAM, "run", "--backend", "host", *words, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_a_failing_call_is_a_case_with_its_slots_positions_strides_and_outputs(self):
        call = self.captured()
        with self.assertRaisesRegex(RuntimeError, "illegal memory access"):
            call(**arguments(), explode=True)
        call(**arguments())  # one that does not fail is none
        [path] = self.cases()
        document = json.loads(path.read_text())
        self.assertIn("illegal memory access", document["source"])
        case = document["case"]
        self.assertEqual(case["geometry"]["batch"], [{"cached": 7, "uncached": 3}, {"cached": 0, "uncached": 2}])
        mla = case["geometry"]["caches"]["mla"]
        self.assertEqual(mla["slots"], [[9, -1, 10, -1, 33]])
        self.assertEqual((mla["block_size"], mla["block_stride_padding"]), (4, 8))
        self.assertEqual(1 + 3 + 1 + mla["spare_blocks"], 10)
        self.assertEqual(case["layout"], {"q_c": {"stride": 24}})
        params = case["params"]
        self.assertEqual((params["kv_c_out"], params["k_pe_out"], params["indexer"]), (True, False, False))
        self.assertEqual((params["q_lora_rank"], params["max_position"], params["rope_table_dtype"]), (16, 32, "fp32"))
        code, text = self.run_case(path)
        self.assertEqual(code, 0, text)
        # A kernel that was wrong there is wrong on the case.
        self.assertEqual(self.run_case(path, "--kernel", "builtin:fused_norm_rope@k_gated")[0], 1)
        self.assertEqual(self.run_case(path, "--kernel", "builtin:fused_norm_rope@cache_unguarded")[0], 1)

    def test_tensors_lie_beside_the_case_and_are_what_the_kernel_is_given(self):
        call = self.captured(every=1, tensors=True)
        given = arguments()
        call(**given)
        [path] = self.cases()
        case = json.loads(path.read_text())["case"]
        self.assertTrue(case["values"]["q_c"].startswith("stored:"))
        code, text = self.run_case(path)
        self.assertEqual(code, 0, text)
        out = os.path.join(self.folder, "dump")
        done = subprocess.run([PROGRAM, "dump", str(path), "-o", out], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(pathlib.Path(out, "shared", "q_c.npy").read_bytes().endswith(given["q_c"].tobytes()))
        self.assertTrue(pathlib.Path(out, "rank0", "slot_mapping.npy").read_bytes().endswith(given["slot_mapping"].tobytes()))
        # What is stored is held to its digest, and to the case's shape.
        code, text = self.run_case(path, "--set", "params.q_lora_rank=8", "--from")
        self.assertEqual(code, 2, text)
        self.assertIn("/values/q_c: ", text)
        self.assertIn(".bin has 160 bytes, but q_c of this case has 40 elements of bf16", text)
        stored = pathlib.Path(self.folder, case["values"]["q_c"].split(":")[1] + ".bin")
        kept = stored.read_bytes()
        stored.write_bytes(kept[:-1] + b"\0")
        code, text = self.run_case(path)
        self.assertEqual(code, 2, text)
        self.assertIn("does not hold what its name, a SHA-256, says", text)
        stored.unlink()
        code, text = self.run_case(path)
        self.assertEqual(code, 2, text)
        self.assertIn("could not be read: No such file", text)

    def test_padding_query_start_loc_and_outputs_in_place(self):
        given = arguments(slot_mapping=Array("q", [5], [9, -1, 10, -1, -1]), positions=Array("q", [5], [7, 8, 0, 0, 0]))
        given["kv_c_out"] = given["kv_c"]

        def bind(**call):
            return {**call, "live": 3, "query_start_loc": Array("i", [4], [0, 2, 2, 3])}

        self.captured(every=1, bind=bind)(**given)
        [path] = self.cases()
        case = json.loads(path.read_text())["case"]
        self.assertEqual(case["geometry"]["batch"], [{"cached": 7, "uncached": 2}, {}, {"cached": 0, "uncached": 1}])
        self.assertEqual(case["geometry"]["padding"], {"tokens": 2})
        self.assertEqual(case["contract"], {"k_outputs": "in_place"})
        code, text = self.run_case(path)
        self.assertEqual(code, 0, text)

    def test_what_cannot_be_written_is_said_once_and_changes_no_result(self):
        call = self.captured(every=1)
        given = arguments(q_weight=Array("H", [15]))
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertIs(call(**given), given["q_c_out"])
            call(**given)
        self.assertEqual(said.getvalue(), "dcpcheck.capture of wrapper: q_lora_rank is 16, but 15 by the shape of q_weight\n")
        self.assertEqual(self.cases(), [])

    def test_so_many_calls_and_no_more(self):
        call = self.captured(every=2, most=3)
        for _ in range(20):
            call(**arguments())
        self.assertEqual(len(self.cases()), 3)
        self.assertEqual(call.capture.calls, 20)
        self.captured(every=1)(**arguments())  # another wrapper's first call, in the same second
        self.assertEqual(len(self.cases()), 4)

    def test_a_wrong_result_is_told_by_the_user(self):
        call = self.captured(wrong=lambda result, **call: True)
        call(**arguments())
        self.assertEqual(len(self.cases()), 1)

    def test_an_op_json_needs_no_executable(self):
        path = os.path.join(self.folder, "fused_norm_rope.op.json")
        done = subprocess.run([PROGRAM, "ops", "fused_norm_rope", "--json", "-"], capture_output=True, text=True, check=True)
        pathlib.Path(path).write_text(done.stdout)
        del os.environ["DCPCHECK"]
        self.addCleanup(os.environ.__setitem__, "DCPCHECK", PROGRAM)
        call = dcpcheck.capture(path, os.path.join(self.folder, "cases"), every=1, params={"mla_layout": "bf16"})(wrapper)
        call(**arguments())
        [case] = pathlib.Path(self.folder, "cases").glob("*.json")
        self.assertEqual(self.run_case(case)[0], 0)


if __name__ == "__main__":
    unittest.main()
