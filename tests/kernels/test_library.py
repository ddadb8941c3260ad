"""Libraries: sources, options, warnings, inspection."""

import copy
import gc
import multiprocessing
import os
import pickle
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
ID = "uint i [[thread_position_in_grid]]"


def pickle_of(value):
    return pickle.loads(pickle.dumps(value))


def run(kernel, dtype=np.float32, n=1):
    out = np.zeros(n, dtype)
    kernel(out, threads=n)
    return out


def test_a_file_includes_files_of_its_folder_and_of_others(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "far.h").write_text("#define FAR 20\n")
    (tmp_path / "near.h").write_text('#include "far.h"\nconstant int near_value = 3;\n')
    file = tmp_path / "kernel.metal"
    file.write_text(
        '#include "near.h"\nkernel void f(device int* x) { x[0] = near_value + FAR; }\n'
    )
    lib = mtl.library(path=file, include_dirs=[tmp_path / "lib"])
    assert run(lib.f, np.int32) == 23
    assert lib.f.source == file.read_text()
    assert repr(lib) == f"<Library {file}: 1 kernel (f)>"


def test_a_changed_include_is_noticed(tmp_path):
    header, file = tmp_path / "value.h", tmp_path / "kernel.metal"
    file.write_text('#include "value.h"\nkernel void f(device int* x) { x[0] = VALUE; }\n')
    for value in (1, 2, 2, 1):
        header.write_text(f"#define VALUE {value}\n")
        assert run(mtl.library(path=file).f, np.int32) == value


def test_errors_in_an_include_are_at_its_own_line(tmp_path):
    (tmp_path / "bad.h").write_text("\n\nfloat bad() { return wrong; }\n")
    file = tmp_path / "kernel.metal"
    file.write_text('#include "bad.h"\nkernel void f(device float* x) { x[0] = bad(); }\n')
    with pytest.raises(mtl.CompileError) as caught:
        mtl.library(path=file)
    assert str(caught.value) == (
        f"{tmp_path}/bad.h:3:22: error: use of undeclared identifier 'wrong'\n"
        "float bad() { return wrong; }\n"
        "                     ^"
    )
    assert caught.value.filename == f"{tmp_path}/bad.h"
    assert caught.value.lineno == 3


def test_defines():
    source = "kernel void f(device int* x) { x[0] = A + B; }\n#ifdef EMPTY\n#else\n#error\n#endif"
    lib = mtl.library(source, defines={"A": 40, "B": True, "EMPTY": None})
    assert run(lib.f, np.int32) == 41


def test_math_modes():
    source = HEADER + (
        "kernel void fused(device float* x) {\n"
        "    x[0] = x[1] * x[1] + x[2];\n}\n"
        "#ifdef __FAST_MATH__\n#define FAST 1\n#else\n#define FAST 0\n#endif\n"
        "kernel void is_fast(device int* x) { x[0] = FAST; }\n"
    )
    results = {}
    for mode in ("safe", "relaxed", "fast"):
        lib = mtl.library(source, math_mode=mode)
        x = np.float32([0, 1 + 2.0**-12, -1 - 2.0**-11])
        lib.fused(x, threads=1)
        results[mode] = float(x[0])
        assert run(lib.is_fast, np.int32) == (mode == "fast")
    # The product's last bits survive only if it is not rounded before the addition.
    assert results == {"safe": 0.0, "relaxed": 2.0**-24, "fast": 2.0**-24}


def test_safe_mode_preserves_infinities_and_nans():
    lib = mtl.library(
        HEADER + f"kernel void f(device float* x, {ID}) {{\n"
        "    float v = x[i]; x[i] = isnan(v) ? 1 : isinf(v) ? 2 : v == v ? 3 : 4; }"
    )
    x = np.array([np.nan, np.inf, -np.inf, 0], np.float32)
    lib.f(x, threads=4)
    assert x.tolist() == [1, 2, 2, 3]


def test_warnings_are_collected():
    lib = mtl.library(f"kernel void f(device int* x, {ID}) {{\n    int unused;\n    x[i] = 1;\n}}")
    (warning,) = lib.warnings
    assert str(warning) == (
        "program_source:2:9: warning: unused variable 'unused'\n    int unused;\n        ^"
    )
    assert mtl.library(lib.source).warnings == lib.warnings  # also from the cache


def test_correct_metal_gives_no_warnings():
    lib = mtl.library(
        HEADER + "constant float table[2] = {1.0, 2.0};\n"
        "struct S { half4 a; packed_float3 b; };\n"
        "struct Half { half4 operator()(float x) const { return half4(x); } };\n"
        "template <typename T> T twice(T x) { return x + x; }\n"
        f"kernel void f(device S* s [[buffer(0)]], const device half* h [[buffer(1)]], {ID}) {{\n"
        "    threadgroup float tile[32];\n"
        "    tile[i % 32] = table[i & 1] * h[i];\n"
        "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        "    s[i].a = Half()(twice(tile[0]));\n"
        "    s[i].b = float3(1, 2, 3) * s[i].b;\n"
        "    uchar c = i; c += 1; s[i].a.x = c;\n}"
    )
    assert lib.warnings == ()


def test_a_text_without_functions_gives_no_warnings():
    assert mtl.library("constant int x = 3;").warnings == ()


def test_a_suggestion_names_what_the_author_must_write():
    with pytest.raises(mtl.CompileError, match="did you mean 'metal::some_integer'"):
        mtl.library("namespace metal { typedef int some_integer; } some_integer x;")


def test_every_kernel_is_an_attribute_and_an_item():
    lib = mtl.library(
        "kernel void a(device int* x) { x[0] = 1; }\nkernel void b(device int* x) { x[0] = 2; }"
    )
    assert lib.functions == ("a", "b") == tuple(lib)
    assert "a" in lib
    assert "c" not in lib
    assert len(lib) == 2
    assert {"a", "b"} <= set(dir(lib))
    assert lib.a is lib["a"] is lib.function("a")
    assert not hasattr(lib, "c")
    with pytest.raises(KeyError):
        lib["c"]


@pytest.mark.needs("the CPU")
def test_inspection():
    kernel = mtl.library(HEADER + f"kernel void f(device float4* x, {ID}) {{ x[i] *= 2; }}").f
    assert str(kernel.signature) == "f(device float4* x)"
    (parameter,) = kernel.signature.buffers
    assert (parameter.layout.bytes, parameter.layout.alignment) == (16, 16)
    assert (parameter.layout.lanes, parameter.layout.scalar.name) == (4, "float")
    assert "define void @mtl_kernel" in kernel.asm["ll"]
    machine = kernel.asm["x86" if os.uname().machine == "x86_64" else "arm64"]
    assert "mtl_kernel:" in machine
    assert "f(device float4* x" in kernel.asm["cpp"]
    assert kernel.max_group_size == 1024
    assert kernel.engine.startswith(f"{mtl.config.cpu_engine}: ")
    assert repr(kernel) == "<Kernel f(device float4* x) on cpu>"


def test_kernels_may_be_named_like_builtins():
    lib = mtl.library(
        HEADER + "kernel void exp(device float* x) { x[0] = metal::exp(0.0); }\n"
        "kernel void min(device float* x) { x[0] = 2; }\n"
        "kernel void device_add(device float* x) { x[0] = 3; }"
    )
    assert [float(run(lib[name])[0]) for name in lib] == [1, 2, 3]


def test_function_constants():
    lib = mtl.library(
        HEADER + "constant int n [[function_constant(0)]];\n"
        "constant float2 v [[function_constant(1)]];\n"
        "constant bool has_n = is_function_constant_defined(n);\n"
        "kernel void f(device float* x) { x[0] = has_n ? n + v.y : -1; }"
    )
    assert run(lib.f) == -1
    assert run(lib.function("f", {"n": 3, "v": (1, 0.5)})) == 3.5
    assert run(lib.function("f", {0: 4})) == 4
    assert lib.function("f", {"n": 3}) is lib.function("f", {0: 3})


def test_templates_whose_arguments_follow_from_the_parameters():
    library = mtl.library(
        """
        namespace ops {
        template <typename T, int N> struct Box { T x[N]; };
        template <typename T, int N>
        kernel void total(device T* out, constant Box<T, N>& box)
        { *out = 0; for (int i = 0; i < N; ++i) *out += box.x[i]; }
        }
        template [[host_name("total_f2")]] [[kernel]] void ops::total(
            device float* out [[buffer(0)]], constant ops::Box<float, 2>& box [[buffer(1)]]);
        namespace ops {
        template kernel void total(device int* out, constant Box<int, 3>& box);
        }
        """
    )
    out = np.zeros(1, np.float32)
    library.total_f2(out, np.array([1, 2], np.float32).tobytes(), threads=1)
    assert out[0] == 3
    out = np.zeros(1, np.int32)
    library.total(out, np.array([1, 2, 4], np.int32).tobytes(), threads=1)
    assert out[0] == 7


def test_templates_with_host_names():
    lib = mtl.library(
        HEADER
        + "namespace ops { struct Twice { template <typename T> T operator()(T x) { return 2 * x; } };\n"
        f"template <typename T, typename Op, int N = 1> [[kernel]] void map(device T* x [[buffer(0)]], {ID}) {{\n"
        "    for (int k = 0; k < N; k++) x[i] = Op()(x[i]); }\n}\n"
        "#define MAKE(name, T) template [[host_name(name)]] [[kernel]] decltype(ops::map<T, ops::Twice, 3>) ops::map<T, ops::Twice, 3>;\n"
        'MAKE("map_float", float)\nMAKE("map_int", int)'
    )
    assert lib.functions == ("map_float", "map_int")
    x = np.array([1.5, 2], np.float32)
    lib.map_float(x, threads=2)
    assert x.tolist() == [12, 16]
    y = np.array([1, 2], np.int32)
    lib.map_int(y, threads=2)
    assert y.tolist() == [8, 16]


def test_the_second_time_nothing_is_compiled(fresh_cache, monkeypatch):
    source = HEADER + f"kernel void f(device float* x, {ID}) {{ x[i] = {time.time_ns()}; }}"
    mtl.library(source).f(np.zeros(1, np.float32), threads=1)
    from metalloid.compiler.toolchain import clang

    def refuse(*_, **__):
        raise AssertionError("the compiler was called")

    monkeypatch.setattr(clang, "run", refuse)
    assert run(mtl.library(source).f) > 0


def test_texts_that_differ_by_attributes_only_are_different_kernels():
    text = "kernel void f(device uint* x, uint i [[thread_position_in_grid]], uint v [[%s]]) { x[i] = v; }"
    values = []
    for name in ("thread_index_in_simdgroup", "threads_per_simdgroup", "threads_per_grid"):
        x = np.zeros(3, np.uint32)
        mtl.library(text % name).f(x, threads=3)
        values.append(x.tolist())
    assert values == [[0, 1, 2], [32] * 3, [3] * 3]


def test_devices():
    (device,) = [d for d in mtl.devices() if d.name == "cpu"]
    assert device is mtl.Device("cpu") is mtl.Device(device)
    assert mtl.default_device() in mtl.devices()
    information = device.info()
    assert information.threads >= 1
    assert information.memory_bytes > 2**28
    with mtl.config.scope(device="cpu"):
        assert mtl.default_device() is device


def test_a_union_with_vectors_is_copied():
    lib = mtl.library(f"""{HEADER}
    union Bits {{ uint2 words; uchar4 bytes[2]; }};
    struct Both {{ Bits bits; uint last; }};
    Bits swapped(Bits b) {{ Bits r; r.words = b.words.yx; return r; }}
    kernel void f(device uint2 *out, device const Bits *in, constant Both &both, {ID}) {{
        Both copy = both;
        Bits b = swapped(in[i]);
        b.bytes[0] += copy.bits.bytes[1];
        threadgroup Bits shared[1];
        shared[0] = b;
        out[i] = shared[0].words;
    }}
    """)
    out = np.zeros(2, np.uint32)
    both = np.array([0, 0x01020304, 0, 0], np.uint32)
    lib.f(out, np.array([5, 7], np.uint32).view("V8"), both.view("V16"), threads=1)
    assert out.tolist() == [0x01020304 + 7, 5]


@pytest.mark.needs("the CPU")
def test_an_engine_that_there_is_not():
    with (
        pytest.raises(ValueError, match="one of simd, refer"),
        mtl.config.scope(cpu_engine="fast"),
    ):
        pass


@pytest.mark.needs("the CPU")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")
def test_code_goes_with_its_kernels():
    """A process may have 65,530 mappings."""
    x = np.zeros(64, np.int32)

    def run(count):
        for value in range(count):
            text = f"""kernel void f(device int* x, uint i [[thread_position_in_threadgroup]]) {{
                threadgroup int t[{value + 1}];
                t[i % {value + 1}] = {value};
                threadgroup_barrier(mem_flags::mem_threadgroup);
                x[i] = t[0];
            }}"""
            mtl.library(HEADER + text).f(x, threads=64, group_size=64)
            assert (x == value).all()
        gc.collect()
        return Path("/proc/self/maps").read_text().count("/kernel.so")

    before = run(2)
    assert run(12) == before


# -- what a text may be, and what is asked of it


def test_a_text_that_begins_with_a_byte_order_mark(tmp_path):
    text = "\ufeffkernel void f(device int* x) { x[0] = 1; }\n"
    (tmp_path / "kernel.metal").write_text(text, "utf-8")
    (tmp_path / "with.h").write_text("\ufeff#define ONE 1\n", "utf-8")
    assert run(mtl.library(text).f, np.int32) == 1
    assert run(mtl.library(path=tmp_path / "kernel.metal").f, np.int32) == 1
    (tmp_path / "kernel.metal").write_text('#include "with.h"\n' + text[1:].replace("1;", "ONE;"))
    assert run(mtl.library(path=tmp_path / "kernel.metal").f, np.int32) == 1


@pytest.mark.parametrize("kind", [str, Path])
def test_one_folder_of_includes(kind, tmp_path):
    (tmp_path / "three.h").write_text("#define THREE 3\n")
    text = '#include "three.h"\nkernel void f(device int* x) { x[0] = THREE; }'
    assert run(mtl.library(text, include_dirs=kind(tmp_path)).f, np.int32) == 3


def test_macros_of_every_kind_of_value():
    defines = {
        "A": 1,
        "B": True,
        "C": None,
        "D": "2 + 3",
        "E": 2.5,
        "F(x)": "(x) * 10",
        "G": np.int32(7),
    }
    text = """
    #ifdef C
    kernel void f(device float* x) { x[0] = A + B + D + E C + F(2) + G; }
    #endif"""
    assert run(mtl.library(text, defines=defines).f) == 1 + 1 + 5 + 2.5 + 20 + 7


def test_pragmas_for_linkers_have_no_meaning():
    text = '#pragma comment(lib, "m")\nkernel void f(device int* x) { x[0] = 1; }'
    assert run(mtl.library(text).f, np.int32) == 1


def test_warnings_are_shown_where_the_program_compiles(tmp_path):
    text = "kernel void f(device int* x) {\n  int a;\n  x[0] = a;\n}"
    (tmp_path / "kernel.metal").write_text(text)
    for compile_ in (
        lambda: mtl.library(text),
        lambda: mtl.library(path=tmp_path / "kernel.metal"),
        lambda: mtl.load(tmp_path / "kernel.metal"),
    ):
        with pytest.warns(mtl.CompileWarning, match="3:10: warning: .*uninitialized") as shown:
            compile_()
        assert [warning.filename for warning in shown] == [__file__]
    many = "kernel void f(device int* x) {\n" + "".join(
        f"int a{i}; x[{i}] = a{i};\n" for i in range(9)
    )
    with pytest.warns(mtl.CompileWarning, match=r"\.\.\. and 4 more"):
        assert len(mtl.library(many + "}").warnings) == 9


def test_texts_of_the_package_itself_do_not_warn():
    """Elementwise kernels and the like write a part of the text; no line of the program has it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel = mtl.ElementwiseKernel("T x", "T y", "T unused; y = x * unused", "unused")
        kernel(mtl.ones(3))


# -- pickles


@pytest.mark.parametrize("copied", [pickle_of, copy.copy, copy.deepcopy], ids=lambda f: f.__name__)
def test_libraries_and_kernels_are_pickled_as_texts(copied, tmp_path):
    (tmp_path / "four.h").write_text("#define FOUR 4\n")
    lib = mtl.library(
        """#include "four.h"
        constant int n [[function_constant(3)]];
        kernel void f(device int* x) { x[0] = FOUR * SCALE + n; }""",
        include_dirs=tmp_path,
        defines={"SCALE": 10},
        math_mode="fast",
    )
    assert run(copied(lib.function("f", {"n": 2})), np.int32) == 42
    assert run(copied(lib).function("f", {3: 1}), np.int32) == 41
    assert copied(lib).functions == lib.functions


def test_pickles_of_what_is_compiled_for_another_machine():
    lib = mtl.library("kernel void f(device int* x) { x[0] = 1; }", target="cpu:aarch64")
    assert "arm64" in pickle_of(lib.f).asm


def test_a_kernel_in_another_process():
    lib = mtl.library("kernel void f(device int* x) { x[0] = 5; }")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(run, (lib.f, np.int32)) == 5
