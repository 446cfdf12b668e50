#!/usr/bin/env python3
"""Puts known faults into a Triton kernel's source, one at a time, and says which of them dcpcheck catches:

    python3 faults.py examples/fused_norm_rope.json --program dcpcheck --cases DIR

The faults stand beside the binding file, in <its name>.faults.json: [{"name", "replace", "with"}, ...]. `replace` occurs once in
the kernel's file. The kernel as it is must pass every case, each fault must fail one. Exit 0 where all is so.
"""

import argparse
import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile


def export_copy(binding, fault, folder):
    """A copy of the kernel with the fault in it (None: as it is), exported; where its manifest lies."""
    copy = folder / "source"
    copy.mkdir(parents=True)
    shutil.copy(binding, copy)
    name = json.loads(binding.read_text(encoding="utf-8"))["kernel"]
    source = (binding.parent / name).read_text(encoding="utf-8")
    if fault is not None:
        if source.count(fault["replace"]) != 1:
            raise RuntimeError(f"{fault['name']}: what it replaces is {source.count(fault['replace'])} times in {name}")
        source = source.replace(fault["replace"], fault["with"])
    (copy / name).write_text(source, encoding="utf-8")
    exporter = pathlib.Path(__file__).with_name("export.py")
    command = [sys.executable, str(exporter), str(copy / binding.name), "-o", str(folder / "out"), "--jobs", "8"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{fault['name'] if fault else 'the kernel'} cannot be exported: {done.stderr.strip()[-2000:]}")
    return folder / "out" / "manifest.json"


def run(program, manifest, cases, report):
    """How `dcpcheck run` ended, and its results that are not as they should be."""
    command = [program, "run", "--backend", "cuda", "--kernel", f"cubin:{manifest}", "--json", str(report), str(cases)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-1000:]}")
    results = json.loads(report.read_text(encoding="utf-8"))["results"]
    return results, [result for result in results if result["status"] not in ("pass", "skipped")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binding", type=pathlib.Path)
    parser.add_argument("--program", default="dcpcheck", help="dcpcheck")
    parser.add_argument("--cases", type=pathlib.Path, required=True, help="a folder of cases")
    arguments = parser.parse_args()
    faults = json.loads(arguments.binding.with_suffix(".faults.json").read_text(encoding="utf-8"))
    as_expected = True
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        subjects = [None] + faults
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            exported = [pool.submit(export_copy, arguments.binding, fault, folder / str(i)) for i, fault in enumerate(subjects)]
            for i, fault in enumerate(subjects):
                name = "the kernel as it is" if fault is None else fault["name"]
                try:
                    results, bad = run(arguments.program, exported[i].result(), arguments.cases, folder / f"{i}.report.json")
                except RuntimeError as error:
                    print(f"{name}: !! {error}")
                    as_expected = False
                    continue
                said = f"{len(results)} cases: {sum(result['status'] == 'pass' for result in results)} pass, {len(bad)} do not"
                if fault is None:
                    right = not bad and any(result["status"] == "pass" for result in results)
                    said += ": ok" if right else ": !!"
                else:
                    right = bool(bad)
                    reasons = sorted({f"{result['status']} ({result['reason']})" for result in bad})
                    said += f": caught: {', '.join(reasons)}" if right else ": !! not caught"
                print(f"{name}: {said}", flush=True)
                as_expected = as_expected and right
    return 0 if as_expected else 1


if __name__ == "__main__":
    sys.exit(main())
