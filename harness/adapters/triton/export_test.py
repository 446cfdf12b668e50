"""export.py with a stand-in for Triton, so that it needs none: what it asks the compiler for, and what it says of the answer.

Its "cubins" are PTX with the parameters that Triton would leave, so that dcpcheck itself reads each manifest and compares them.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = pathlib.Path(__file__).parent
PROGRAM = os.environ["DCPCHECK_PROGRAM"]

# A package `triton` with what export.py uses. TRITON_SAYS: metadata, as JSON.
TRITON = {
    "__init__.py": """
        import json, os, types
        class Parameter:
            def __init__(self, name, fixed):
                self.name, self.do_not_specialize = name, name in fixed
        class Function:
            def __init__(self, function, fixed):
                code = function.__code__
                self.arg_names = list(code.co_varnames[:code.co_argcount])
                self.params = [Parameter(name, fixed) for name in self.arg_names]
                self.__name__ = function.__name__
        def jit(function=None, do_not_specialize=()):
            return Function(function, ()) if function else lambda f: Function(f, do_not_specialize)
        def compile(source, target, options):
            bits = {"i1": ".u8", "i32": ".u32", "i64": ".u64", "fp32": ".f32"}
            takes = [bits.get(kind, ".u64") for kind in source.signature.values() if kind != "constexpr"]
            says = json.loads(os.environ.get("TRITON_SAYS", "{}"))
            takes += [".u64"] * says.pop("scratch_pointers", 2)
            name = source.fn.__name__
            ptx = (".version 8.0\\n.target sm_90\\n.visible .entry " + name + "(" +
                   ", ".join(f".param {kind} p{i}" for i, kind in enumerate(takes)) + ")\\n{ ret; }\\n// " +
                   json.dumps([sorted(map(str, source.attrs)), str(target), options, {k: v for k, v in source.constexprs.items()}]))
            metadata = {"name": name, "shared": 0, "num_warps": options["num_warps"], "num_ctas": 1, "global_scratch_size": 0,
                        "profile_scratch_size": 0, **says}
            return types.SimpleNamespace(asm={"ptx": ptx, "cubin": ptx.encode()}, metadata=types.SimpleNamespace(**metadata))
    """,
    "backends/__init__.py": "",
    "backends/compiler.py": """
        import collections
        GPUTarget = collections.namedtuple("GPUTarget", "backend arch warp_size")
    """,
    "compiler.py": """
        class ASTSource:
            def __init__(self, fn, signature, constexprs, attrs):
                assert list(signature) == fn.arg_names
                self.fn, self.signature, self.constexprs, self.attrs = fn, signature, constexprs, attrs
    """,
    "language.py": "constexpr = int\n",
}

KERNEL = """
    import triton

    @triton.jit(do_not_specialize=["rounded"])
    def norm(x, x_stride, step, eps, rounded, extra, BLOCK):
        pass
"""

BINDING = {
    "kernel": "norm.py", "function": "norm", "op": "fused_eh_norm", "name": "a test's", "contract": {"norm_round": ["none", "bf16"]},
    "grid": ["T", 2], "num_warps": 8,
    "parameters": {
        "x": {"bind": "address", "tensor": "embeds", "offset": 2, "type": "*bf16"},
        "x_stride": {"bind": "stride", "tensor": "embeds", "axis": 0, "type": "i64", "optional": True},
        "step": {"bind": "stride", "tensor": "embeds", "axis": 1, "type": "i32"},
        "eps": {"bind": "number", "param": "embeds_eps", "type": "fp32"},
        "rounded": {"bind": "value", "value": "option.norm_round == 'bf16'", "type": "i1"},
        "extra": {"bind": "address", "tensor": "hidden_weight", "type": "*bf16"},
    },
    "variants": [{"name": "all", "when": "T > 0 || T == 0", "constexprs": {"BLOCK": 128, "step": 1}, "unused": ["extra"]}],
}


class Export(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        for name, text in TRITON.items():
            path = self.folder / "packages/triton" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")
        (self.folder / "norm.py").write_text(textwrap.dedent(KERNEL), encoding="utf-8")

    def export(self, binding, says=None, words=()):
        path = self.folder / "norm.json"
        path.write_text(binding if isinstance(binding, str) else json.dumps(binding), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(self.folder / "packages"), "TRITON_SAYS": json.dumps(says or {}),
                       "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, str(HERE / "export.py"), str(path), "-o", str(self.folder / "out"), "--jobs", "1", *words]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    def manifest(self, binding, says=None, words=()):
        done = self.export(binding, says, words)
        self.assertEqual(done.returncode, 0, done.stderr)
        path = self.folder / "out/manifest.json"
        read = subprocess.run([PROGRAM, "kernels", f"cubin:{path}"], capture_output=True, text=True, check=False)
        self.assertEqual(read.returncode, 0, read.stderr)
        return json.loads(path.read_text(encoding="utf-8"))

    def changed(self, **members):
        return {**BINDING, **members}

    def variant(self, **members):
        return self.changed(variants=[{**BINDING["variants"][0], **members}])

    def asked(self, number):
        """What the compiler was asked for: attributes, target, options, constants."""
        variant = json.loads((self.folder / "out/manifest.json").read_text(encoding="utf-8"))["variants"][number]
        return json.loads((self.folder / "out" / variant["module"]).read_text(encoding="utf-8").split("// ")[-1])

    def test_both_forms_and_what_they_take_for_granted(self):
        aligned, general = self.manifest(BINDING)["variants"]
        self.assertEqual([aligned["name"], general["name"]], ["all, aligned", "all, general"])
        self.assertEqual(aligned["requires"], [
            {"address": "embeds", "divisible_by": 16, "offset": 2},
            {"value": "embeds.present ? embeds.stride0 : 0", "divisible_by": 16},
            {"value": "embeds.stride1", "equal_to": 1}])
        self.assertEqual(general["requires"], [{"value": "embeds.stride1", "equal_to": 1}])
        self.assertEqual(general["when"], "(T > 0 || T == 0)")
        self.assertEqual(general["block"], [256])
        self.assertEqual([p["bind"] for p in general["parameters"]], ["address", "stride", "number", "value", "null", "null"])
        attributes, target, options, constants = self.asked(0)
        self.assertEqual(attributes, ["(0,)", "(1,)"])
        self.assertEqual(self.asked(1)[0], [])
        self.assertEqual(target, "GPUTarget(backend='cuda', arch=90, warp_size=32)")
        self.assertEqual(options, {"num_warps": 8})
        self.assertEqual(constants, {"step": 1, "extra": None, "BLOCK": 128})

    def test_an_address_folded_as_null_is_for_cases_without_it(self):
        variant = self.variant(constexprs={"BLOCK": 128, "step": 1, "extra": None}, unused=[])
        self.assertEqual(self.manifest(variant)["variants"][0]["when"], "(T > 0 || T == 0) && !hidden_weight.present")

    def test_what_the_compiled_kernel_says_of_itself(self):
        says = {"shared": 70000, "num_ctas": 2, "launch_cooperative_grid": True, "launch_pdl": True, "global_scratch_size": 64}
        variant = self.manifest(self.variant(forms=["general"]), says)["variants"][0]
        self.assertEqual(variant["shared_bytes"], 70000)
        self.assertEqual((variant["cluster"], variant["grid"]), ([2], ["(T) * 2", "2"]))
        self.assertTrue(variant["cooperative"] and variant["programmatic_stream_serialization"])
        self.assertEqual(variant["parameters"][-2:], [
            {"name": "global_scratch", "bind": "scratch", "bytes": "(T) * (2) * 128", "zeroed": True},
            {"name": "profile_scratch", "bind": "null"}])

    def test_one_scratch_pointer_or_none(self):
        for pointers in (0, 1):
            parameters = self.manifest(BINDING, {"scratch_pointers": pointers})["variants"][0]["parameters"]
            self.assertEqual(len(parameters), 4 + pointers)
        self.assertIn("takes 7 parameters, and 6 are known", self.export(BINDING, {"scratch_pointers": 3}).stderr)

    def test_targets(self):
        self.manifest(BINDING, words=["--target", "sm_100a"])
        self.assertIn("arch=100,", self.asked(0)[1])
        self.assertEqual(self.export(BINDING, words=["--target", "90"]).returncode, 2)

    def test_a_defect_is_a_sentence_and_leaves_no_manifest(self):
        parameters = BINDING["parameters"]
        for binding, sentence in [
            ("{", "it cannot be read: "),
            ("[]", "it is no object"),
            (self.changed(kernels=1), 'it has "kernels", which is none of '),
            ({k: v for k, v in BINDING.items() if k != "grid"}, 'it has no "grid"'),
            (self.changed(kernel="none.py"), "there is no Python file "),
            (self.changed(function="nrom"), "norm.py has no @triton.jit function nrom"),
            (self.changed(parameters={**parameters, "y": parameters["x"]}), 'the binding has "y", which is none of x, x_stride'),
            (self.changed(parameters={k: v for k, v in parameters.items() if k != "eps"}), "says nothing of eps"),
            (self.changed(parameters={**parameters, "eps": {**parameters["eps"], "type": "fp8"}}), "eps has the type fp8"),
            (self.changed(parameters={**parameters, "eps": {"bind": "null"}}), 'the parameter eps has no "type"'),
            (self.variant(constexprs={"BLOCK": 128, "x": 1}), "x is an address, and can be folded as null alone"),
            (self.variant(constexprs={"BLOCK": 128, "eps": 1.5}), "eps is folded to 1.5, which no launch can be held to"),
            (self.variant(constexprs={"BLOCK": 128, "x_stride": None}), "x_stride is folded to null, which no launch"),
            (self.variant(forms=["fast"]), "variant 0's forms has \"fast\""),
            (self.variant(wen="T"), 'variant 0 has "wen"'),
        ]:
            done = self.export(binding)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(sentence, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertFalse((self.folder / "out/manifest.json").exists())


class Examples(unittest.TestCase):
    def test_each_fault_is_in_the_source_once(self):
        for path in (HERE / "examples").glob("*.faults.json"):
            binding = json.loads((path.parent / (path.name.split(".")[0] + ".json")).read_text(encoding="utf-8"))
            source = (path.parent / binding["kernel"]).read_text(encoding="utf-8")
            faults = json.loads(path.read_text(encoding="utf-8"))
            self.assertGreaterEqual(len(faults), 10)
            for fault in faults:
                self.assertEqual(source.count(fault["replace"]), 1, fault["name"])
                self.assertNotEqual(fault["replace"], fault["with"])


if __name__ == "__main__":
    unittest.main()
