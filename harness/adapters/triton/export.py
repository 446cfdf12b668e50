#!/usr/bin/env python3
"""Compiles a Triton kernel ahead of time, and writes the manifest that dcpcheck launches it by:

    python3 export.py examples/fused_norm_rope.json -o /tmp/kernel
    dcpcheck run --backend cuda --kernel cubin:/tmp/kernel/manifest.json CASE

The binding file says what each of the kernel's parameters is; README.md beside this file has its format. Each variant is compiled
twice: as Triton does where 16 divides every address and every number that it specialises on, and for all other launches. What it
was specialised on goes into the manifest, so that no launch breaks it. Needs Triton 3.4 or later, and no GPU.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import sys

# Triton's types of numbers, as a manifest has them.
NUMBERS = {
    "i1": "i8", "i8": "i8", "u8": "i8", "i16": "i16", "u16": "i16", "i32": "i32", "u32": "i32", "i64": "i64", "u64": "i64",
    "fp32": "f32", "fp64": "f64",
}
# What goes from a binding file into the manifest as it is.
DECLARED = ["op", "name", "doc", "contract", "tensors", "requirements", "values"]
# What Triton compiles in one form at a time, and what that form takes for granted.
FORMS = ["aligned", "general"]
DIVISOR = 16


class BindingError(Exception):
    """The binding file or the kernel is not what it should be; one sentence."""


def known(members, names, place):
    for name in members:
        if name not in names:
            raise BindingError(f"{place} has \"{name}\", which is none of {', '.join(names)}")


def required(members, name, place):
    if name not in members:
        raise BindingError(f"{place} has no \"{name}\"")
    return members[name]


def read_binding(path):
    try:
        binding = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BindingError(f"it cannot be read: {error}") from error
    if not isinstance(binding, dict):
        raise BindingError("it is no object")
    known(binding, ["kernel", "function", "grid", "num_warps", "options", "parameters", "variants"] + DECLARED, "it")
    for name in ["kernel", "function", "grid", "parameters", "variants", "op", "name"]:
        required(binding, name, "it")
    for name, parameter in binding["parameters"].items():
        for member in ["bind", "type"]:
            required(parameter, member, f"the parameter {name}")
    for number, variant in enumerate(binding["variants"]):
        place = f"variant {number}"
        known(variant, ["name", "when", "requires", "constexprs", "unused", "types", "grid", "num_warps", "options", "forms"], place)
        required(variant, "name", place)
        known(variant.get("forms", []), FORMS, f"{place}'s forms")
    return binding


def load_function(binding, path):
    """The @triton.jit function that the binding names; its file lies beside the binding's."""
    source = path.parent / binding["kernel"]
    spec = importlib.util.spec_from_file_location(source.stem, source)
    if spec is None or not source.is_file():
        raise BindingError(f"there is no Python file {source}")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(source.parent.resolve()))
    spec.loader.exec_module(module)
    function = getattr(module, binding["function"], None)
    if not hasattr(function, "arg_names"):
        raise BindingError(f"{source.name} has no @triton.jit function {binding['function']}")
    return function


def arguments_of(function, binding, variant):
    """For each of the function's arguments in order: its name, and the type that it is compiled with or the constant that it is."""
    constants = {**variant.get("constexprs", {}), **{name: None for name in variant.get("unused", [])}}
    types = variant.get("types", {})
    known(list(constants) + list(types) + list(binding["parameters"]), function.arg_names, "the binding")
    arguments = []
    for name in function.arg_names:
        if name in constants:
            arguments.append((name, None, constants[name]))
            continue
        if name not in binding["parameters"]:
            raise BindingError(f"the variant \"{variant['name']}\" says nothing of {name}: it is neither bound nor a constexpr")
        kind = types.get(name, binding["parameters"][name]["type"])
        if not kind.startswith("*") and kind not in NUMBERS:
            raise BindingError(f"the parameter {name} has the type {kind}, which no manifest can pass")
        arguments.append((name, kind, None))
    return arguments


def is_specialised(function, position, kind, parameter):
    """Whether Triton looks at what divides such an argument: addresses and whole numbers, but for those that it is told not to."""
    argument = function.params[position]
    if getattr(argument, "do_not_specialize", False):
        return False
    if kind.startswith("*"):
        return parameter["bind"] == "address" and not getattr(argument, "do_not_specialize_on_alignment", False)
    # Strides of a cache group's own tensor have no name in a manifest's expressions.
    return kind not in ("i1", "fp32", "fp64") and "." not in parameter.get("tensor", "")


def compile_form(function, binding, arguments, form, capability, options):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature = {name: "constexpr" if kind is None else kind for name, kind, _ in arguments}
    constants = {name: constant for name, kind, constant in arguments if kind is None}
    attributes = {}
    if form == "aligned":
        for position, (name, kind, _) in enumerate(arguments):
            if kind is not None and is_specialised(function, position, kind, binding["parameters"][name]):
                attributes[(position,)] = [["tt.divisibility", DIVISOR]]
    source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=attributes)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


def assumptions_of(function, binding, variant, arguments, form):
    """What the compiled form takes for granted, as a manifest's "requires"; and conditions that go to its "when"."""
    requires, conditions = [], []
    for position, (name, kind, constant) in enumerate(arguments):
        parameter = binding["parameters"].get(name)
        if parameter is None or name in variant.get("unused", []):
            continue
        bind = parameter["bind"]
        present = parameter.get("tensor", "").split(".")[0] + ".present"
        if bind in ("stride", "shape"):
            value = f"{parameter['tensor']}.{bind}{parameter['axis']}"
            if parameter.get("optional"):
                value = f"{present} ? {value} : 0"
        else:
            value = parameter.get("value")
        if kind is None and bind == "address":
            if constant is not None:
                raise BindingError(f"{name} is an address, and can be folded as null alone")
            if f"!{present}" not in conditions:
                conditions.append(f"!{present}")
        elif kind is None:
            if value is None or not isinstance(constant, int):
                raise BindingError(f"{name} is folded to {json.dumps(constant)}, which no launch can be held to: name it in \"unused\" "
                                   "where the kernel does not look at it")
            requires.append({"value": value, "equal_to": int(constant)})
        elif form == "aligned" and is_specialised(function, position, kind, parameter):
            if bind == "address":
                assumed = {"address": parameter["tensor"], "divisible_by": DIVISOR}
                if "offset" in parameter:
                    assumed["offset"] = parameter["offset"]
                requires.append(assumed)
            else:
                requires.append({"value": value, "divisible_by": DIVISOR})
    return requires, conditions


def bound_parameters(binding, arguments, compiled, grid):
    """The compiled kernel's parameters in order: its arguments but for folded ones, then scratch that Triton adds."""
    parameters = []
    for name, kind, _ in arguments:
        if kind is None:
            continue
        parameter = {"name": name, **binding["parameters"][name]}
        del parameter["type"]
        if not kind.startswith("*"):
            parameter["type"] = NUMBERS[kind]
        parameters.append(parameter)
    entry = re.search(r"\.entry\s+[\w$]+\s*\((.*?)\)", compiled.asm["ptx"], re.DOTALL)
    taken = entry.group(1).count(".param") if entry else 0
    programs = " * ".join(f"({extent})" for extent in grid)
    clusters = getattr(compiled.metadata, "num_ctas", 1)
    for name in ["global_scratch", "profile_scratch"]:
        if len(parameters) == taken:
            break
        size = getattr(compiled.metadata, name + "_size", 0) or 0
        parameters.append({"name": name, "bind": "scratch", "bytes": f"{programs} * {size * clusters}", "zeroed": True}
                          if size else {"name": name, "bind": "null"})
    if len(parameters) != taken:
        raise BindingError(f"the compiled kernel takes {taken} parameters, and {len(parameters)} are known")
    return parameters


def export_form(binding_path, number, form, capability, directory):
    """Compiles one form of a variant, writes its cubin, and returns its entry of the manifest."""
    binding = read_binding(binding_path)
    variant = binding["variants"][number]
    function = load_function(binding, binding_path)
    arguments = arguments_of(function, binding, variant)
    options = {"num_warps": variant.get("num_warps", binding.get("num_warps", 4)), **binding.get("options", {}),
               **variant.get("options", {})}
    compiled = compile_form(function, binding, arguments, form, capability, options)
    metadata = compiled.metadata
    module = f"{binding['function']}-{number}-{form}.cubin"
    (directory / module).write_bytes(compiled.asm["cubin"])
    requires, conditions = assumptions_of(function, binding, variant, arguments, form)
    grid = [str(extent) for extent in variant.get("grid", binding["grid"])]
    entry = {"name": f"{variant['name']}, {form}", "module": module, "entry": metadata.name}
    when = [variant["when"]] if "when" in variant else []
    if when or conditions:
        entry["when"] = " && ".join(f"({condition})" if "||" in condition or "?" in condition else condition
                                    for condition in when + conditions)
    if requires or "requires" in variant:
        entry["requires"] = variant.get("requires", []) + requires
    threads = re.search(r"\.reqntid\s+(\d+)", compiled.asm["ptx"])
    entry["grid"] = grid
    entry["block"] = [int(threads.group(1)) if threads else 32 * metadata.num_warps]
    if metadata.shared:
        entry["shared_bytes"] = metadata.shared
    clusters = getattr(metadata, "num_ctas", 1)
    if clusters > 1:
        entry["cluster"] = [clusters]
        entry["grid"] = [f"({grid[0]}) * {clusters}"] + grid[1:]
    if getattr(metadata, "launch_cooperative_grid", False):
        entry["cooperative"] = True
    if getattr(metadata, "launch_pdl", False):
        entry["programmatic_stream_serialization"] = True
    entry["parameters"] = bound_parameters(binding, arguments, compiled, grid)
    return entry


def export(binding_path, directory, capability, jobs):
    binding = read_binding(binding_path)
    directory.mkdir(parents=True, exist_ok=True)
    wanted = [(number, form) for number, variant in enumerate(binding["variants"]) for form in variant.get("forms", FORMS)]
    if jobs == 1:
        entries = [export_form(binding_path, number, form, capability, directory) for number, form in wanted]
    else:
        with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
            running = [pool.submit(export_form, binding_path, number, form, capability, directory) for number, form in wanted]
            entries = [each.result() for each in running]
    manifest = {"schema": "dcpcheck.manifest/1", **{name: binding[name] for name in DECLARED if name in binding},
                "variants": entries}
    # Under its name only when it is whole: the cubins are there by then.
    partial = directory / "manifest.json.partial"
    partial.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, directory / "manifest.json")
    return len(entries)


def capability_of(text):
    found = re.fullmatch(r"sm_(\d{2,3})a?", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text} is no target: sm_90 is one")
    return int(found.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binding", type=pathlib.Path, help="the binding file")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="a folder, for manifest.json and its cubins")
    parser.add_argument("--target", type=capability_of, default="sm_90", help="what to compile for; default: sm_90")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many compilers at once")
    arguments = parser.parse_args()
    try:
        count = export(arguments.binding, arguments.output, arguments.target, max(arguments.jobs, 1))
    except BindingError as error:
        print(f"{arguments.binding}: {error}", file=sys.stderr)
        return 2
    print(f"{arguments.output / 'manifest.json'}: {count} variants")
    return 0


if __name__ == "__main__":
    sys.exit(main())
