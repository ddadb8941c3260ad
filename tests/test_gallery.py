"""The gallery: each kernel against NumPy where it has a simple formula, and all as one bundle."""

import importlib
import platform
import sys
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
from metalloid.cli.main import main

GALLERY = Path(__file__).parent.parent / "examples" / "gallery"
NAMES = sorted(path.stem for path in GALLERY.glob("*.metal"))
#: Arguments that make each picture small and quick.
SMALL = {
    "buddhabrot": {"size": 48, "threads": 256, "samples": 4},
    "contours": {"size": 64},
    "equalise": {"size": 64},
    "flame": {"size": 48, "threads": 256, "steps": 60},
    "fluid": {"size": 32, "steps": 4, "iterations": 3},
    "gaussian_splats": {"size": 48, "count": 400},
    "glow": {"size": 64},
    "image_filters": {"size": 96},
    "ising": {"size": 32, "steps": 5},
    "julia": {"size": 48},
    "life": {"size": 64, "steps": 10},
    "mandelbrot": {"size": 48, "iterations": 200},
    "n_body": {"size": 48, "count": 512, "steps": 6},
    "path_tracer": {"size": 32, "launches": 2, "samples": 2},
    "ray_marcher": {"size": 32},
    "reaction_diffusion": {"size": 64, "steps": 20},
    "slime": {"size": 48, "count": 500, "steps": 10},
    "spectrogram": {"size": 24},
    "voronoi": {"size": 48, "count": 20},
    "wave": {"size": 96, "steps": 60},
}
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _scripts_import_each_other(monkeypatch):
    monkeypatch.syspath_prepend(str(GALLERY))
    yield
    for name in NAMES:
        sys.modules.pop(name, None)


def load(name):
    return importlib.import_module(name), mtl.library(path=GALLERY / f"{name}.metal")


def test_every_script_is_here():
    assert SMALL.keys() == set(NAMES) == {path.stem for path in GALLERY.glob("*.py")}
    assert len(NAMES) >= 16


def test_all_kernels_as_a_bundle_have_the_same_bits(tmp_path, monkeypatch):
    text = tmp_path / "gallery.metal"
    text.write_text("".join(f'#include "{name}.metal"\n' for name in NAMES))
    arm = platform.machine().lower() in ("aarch64", "arm64")
    target = "cpu:aarch64" if arm else "cpu:x86-64-v2"
    file = tmp_path / "gallery.mtlb"
    arguments = ["compile", "-o", str(file), str(text), "-I", str(GALLERY), "--target", target]
    assert main(arguments) == 0
    bundle = mtl.load_library(file)
    assert len(bundle.functions) >= 40
    for name in NAMES:
        compiled = load(name)[0].picture(**SMALL[name])
        assert compiled.std() > 1, name  # it shows something
        with monkeypatch.context() as patch:
            patch.setattr(mtl, "library", lambda **options: bundle)
            loaded = load(name)[0].picture(**SMALL[name])
        np.testing.assert_array_equal(loaded, compiled, name)


def test_portable():
    assert main(["check", "--portable", *(str(GALLERY / f"{name}.metal") for name in NAMES)]) == 0


def iterations(c, z, limit, radius2):
    """Count how often z becomes z^2 + c until it is large, in float64."""
    count = np.full(z.shape, limit)
    for n in range(limit):
        z = np.where(count == limit, z * z + c, z)
        count[(count == limit) & (abs(z) ** 2 > radius2)] = n
    return count


def test_mandelbrot():
    image = load("mandelbrot")[0].picture(64, (-0.5, 0), 2.5, 300)
    y, x = np.mgrid[:48, :64] + 0.5
    c = -0.5 + 2.5 * ((x - 32) + 1j * (24 - y)) / 48
    inside = iterations(c, np.zeros_like(c), 300, 1e4) == 300
    assert 0.1 < inside.mean() < 0.5
    black = (image[..., :3] == (5, 5, 13)).all(-1)
    assert (black != inside).mean() < 0.005


def test_julia():
    image = load("julia")[0].picture(64, (-0.79, 0.15), 200)
    y, x = np.mgrid[:48, :64]
    z = 1.25 * ((2 * x + 1 - 64) + 1j * (2 * y + 1 - 48)) / 48
    count = iterations(-0.79 + 0.15j, z, 200, 256.0)
    outer = image[count <= 3][:, :3]
    assert (
        len(outer) > 10
    )  # colours far from the set depend on |z| only: by counts, and without a trap
    inner = image[count > 30][:, :3]
    assert outer.std(0).mean() < inner.std(0).mean()


def test_life():
    module, _ = load("life")
    cells = module.soup(60)
    alive = cells > 0
    for _ in range(12):
        near = sum(
            np.roll(alive, (y, x), (0, 1)).astype(int)
            for y in (-1, 0, 1)
            for x in (-1, 0, 1)
            if (y, x) != (0, 0)
        )
        alive = (near == 3) | (alive & (near == 2))
    now, _ = module.generations(cells, 12)
    np.testing.assert_array_equal(np.asarray(now).reshape(cells.shape) > 0, alive)
    assert alive.any()


def test_fluid():
    _, lib = load("fluid")
    random = np.random.default_rng(0)
    velocity = random.random((12, 20, 2), np.float32)
    divergence, pressure, result = (np.zeros((12, 20), np.float32) for _ in range(3))
    pressure[:] = random.random((12, 20), np.float32)
    lib.fluid_divergence(velocity, divergence, threads=(20, 12))
    x, y = velocity.astype(float)[..., 0], velocity.astype(float)[..., 1]

    def slope(field, axis):
        return (np.roll(field, -1, axis) - np.roll(field, 1, axis)) / 2

    np.testing.assert_allclose(divergence, slope(x, 1) + slope(y, 0), atol=1e-6)
    lib.fluid_relax(divergence, pressure, result, threads=(20, 12))
    near = sum(np.roll(pressure.astype(float), s, a) for s in (-1, 1) for a in (0, 1))
    np.testing.assert_allclose(result, (near - divergence) / 4, atol=1e-6)
    projected = np.zeros_like(velocity)
    lib.fluid_project(velocity, projected, pressure, threads=(20, 12))
    expected = velocity - np.stack([slope(pressure, 1), slope(pressure, 0)], -1)
    np.testing.assert_allclose(projected, expected, atol=1e-6)
    # A flow of whole texels moves the field by as many.
    steady = np.tile(np.float32([3, 1]), (12, 20, 1))
    lib.fluid_advect(steady, velocity, projected, 1.0, 0.5, threads=(20, 12))
    np.testing.assert_allclose(projected, np.roll(velocity, (1, 3), (0, 1)) / 2, atol=2e-3)


def test_n_body():
    module, lib = load("n_body")
    bodies, velocities = module.galaxies(512)
    moved, v = np.zeros_like(bodies), velocities.copy()
    lib.n_body_step(bodies, moved, v, 512, 0.01, threads=512, group_size=256)
    x = bodies[:, :3].astype(float)
    d = x[None] - x[:, None]
    weights = bodies[:, 3] / ((d**2).sum(-1) + 2.5e-3) ** 1.5
    expected = velocities[:, :3] + 0.01 * (weights[..., None] * d).sum(1)
    np.testing.assert_allclose(v[:, :3], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(moved[:, :3], x + 0.01 * expected, rtol=1e-5, atol=1e-6)


def test_gaussian_splats():
    module, lib = load("gaussian_splats")
    arrays = module.knot(60)
    splats, depths = np.zeros(60, lib.splat_project.dtype("splats")), np.zeros(60, np.float32)
    size = np.float32([32, 32])
    lib.splat_project(*arrays, splats, depths, np.float32([1, 1, -5, 0]), size, threads=60)
    order = np.argsort(depths).astype(np.uint32)
    image = np.zeros((32, 32, 4), np.float32)
    lib.splat_blend(image, splats, order, 60, threads=(32, 32), group_size=(16, 16))
    pixel = np.stack(np.meshgrid(np.arange(32) + 0.5, np.arange(32) + 0.5), -1)
    colour, transparency = np.zeros((32, 32, 3)), np.ones((32, 32, 1))
    for s in splats[order]:
        d = pixel - s["centre"]
        xx, xy, yy = s["conic"][:3].astype(float)
        power = -0.5 * (xx * d[..., 0] ** 2 + yy * d[..., 1] ** 2) - xy * d[..., 0] * d[..., 1]
        alpha = np.minimum(0.99, s["colour"][3] * np.exp(power))[..., None]
        alpha = np.where(alpha > 1 / 255, alpha, 0)
        colour += transparency * alpha * s["colour"][:3]
        transparency = transparency * (1 - alpha)
    expected = np.sqrt(np.clip(colour + transparency * [0.05, 0.06, 0.09], 0, 1))
    # Tiles leave out what is three standard deviations away: exp(-4.5) of its opacity.
    assert np.abs(image[..., :3] - expected).mean() < 1e-3
    assert expected.std() > 0.1


def test_reaction_diffusion():
    module, lib = load("reaction_diffusion")
    now = module.start(40)
    then = np.zeros_like(now)
    lib.react(now, then, 0.05, 0.06, threads=(40, 30))
    c = now.astype(float)
    weights = {(0, 0): -1.0, (1, 0): 0.2, (0, 1): 0.2, (1, 1): 0.05}
    laplacian = sum(
        weights[abs(y), abs(x)] * np.roll(c, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)
    )
    u, v = c[..., 0], c[..., 1]
    expected = c + laplacian * [1, 0.5]
    expected += np.stack([0.05 * (1 - u) - u * v * v, u * v * v - 0.11 * v], -1)
    np.testing.assert_allclose(then, expected, atol=1e-6)


def test_image_filters():
    _, lib = load("image_filters")
    image = np.random.default_rng(0).random((10, 14, 4), np.float32)
    padded = np.pad(image.astype(float), [(1, 1), (1, 1), (0, 0)], mode="edge")
    luma = padded[..., :3] @ [0.299, 0.587, 0.114]
    x = luma[:, 2:] - luma[:, :-2]
    y = luma[2:] - luma[:-2]
    x = x[:-2] + 2 * x[1:-1] + x[2:]
    y = y[:, :-2] + 2 * y[:, 1:-1] + y[:, 2:]
    expected = {
        "sobel": np.clip(np.hypot(x, y), 0, 1),
        "emboss": np.clip(0.5 + 0.8 * (luma[2:, 2:] - luma[:-2, :-2]), 0, 1),
    }
    for name, values in expected.items():
        result = np.zeros_like(image)
        lib[f"filter_{name}"](image, result, threads=(14, 10))
        np.testing.assert_allclose(result[..., 0], values, atol=1e-5, err_msg=name)


def test_spectrogram():
    module, _ = load("spectrogram")
    samples = module.song(1024 + 3 * 200)
    windows = np.lib.stride_tricks.sliding_window_view(samples.astype(float), 1024)[:600:200]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1024) / 1024)
    power = np.abs(np.fft.fft(hann * windows)[:, :512]) ** 2
    result = 10 ** (module.spectra(samples, 3, 200) / 10)
    np.testing.assert_allclose(result, power, rtol=1e-3, atol=1e-4)


def test_voronoi_and_glow():
    module, _ = load("voronoi")
    seeds = (np.random.default_rng(0).random((15, 2)) * (60, 40)).astype(np.float32)
    pixel = np.stack(np.meshgrid(np.arange(60) + 0.5, np.arange(40) + 0.5), -1)
    distances = np.linalg.norm(pixel[..., None, :] - seeds, axis=-1)
    nearest = np.asarray(module.nearest_seeds(seeds, (40, 60))).reshape(40, 60, 1)
    chosen = np.take_along_axis(distances, nearest, -1)[..., 0]
    assert (chosen > distances.min(-1) + 1e-4).mean() < 0.002  # jump flooding misses a few
    module, lib = load("glow")
    mask = module.mask_of("ab", (30, 48))
    y, x = np.nonzero(mask > 127)
    points = np.stack([x, y], -1)
    exact = np.linalg.norm(pixel[:30, :48, None] - 0.5 - points, axis=-1).min(-1)
    flooded = np.linalg.norm(module.nearest(lib, mask) - (pixel[:30, :48] - 0.5), axis=-1)
    assert np.isclose(flooded, exact, atol=1e-6).mean() > 0.998


def test_wave():
    module, lib = load("wave")
    speed = module.medium(128)
    random = np.random.default_rng(0)
    now, before = random.standard_normal((2, *speed.shape)).astype(np.float32)
    c, b = np.pad(now.astype(float), 1, mode="edge"), before.astype(float)
    laplacian = c[2:, 1:-1] + c[:-2, 1:-1] + c[1:-1, 2:] + c[1:-1, :-2] - 4 * c[1:-1, 1:-1]
    lib.wave_step(now, before, speed, 0.5, threads=speed.shape[::-1])
    middle = (slice(24, -24), slice(31, -24))
    expected = np.where(speed > 0, 2 * now - b + speed * laplacian, 0)[middle]
    np.testing.assert_allclose(before[middle], expected, atol=1e-5)
    np.testing.assert_array_equal(before[:, 30], 0.5)


def test_contours():
    module, lib = load("contours")
    heights = np.zeros((24, 32), np.float32)
    lib.contours_terrain(heights, 3.0, 1, threads=(32, 24))
    lines = module.lines_of(heights, 20)
    levels = np.arange(1, 21)[:, None, None] / 20
    above = heights[None] >= levels
    crossings = [a[:, 1:] != a[:, :-1] for a in (above, above.swapaxes(1, 2))]
    ends = 0  # each crossing of an inner edge ends a line in two squares
    for c in crossings:
        ends += 2 * c[..., 1:-1].sum() + c[..., 0].sum() + c[..., -1].sum()
    assert len(lines) == ends / 2 > 50
    for x, y in lines.reshape(-1, 2):  # on an edge, at the height of a level
        i, j = int(min(y, 22)), int(min(x, 30))
        fy, fx = y - i, x - j
        h = (1 - fy) * ((1 - fx) * heights[i, j] + fx * heights[i, j + 1])
        h += fy * ((1 - fx) * heights[i + 1, j] + fx * heights[i + 1, j + 1])
        assert abs(20 * h - round(20 * h)) < 1e-3


def test_slime():
    _, lib = load("slime")
    random = np.random.default_rng(0)
    agents = random.random((300, 4), np.float32) * np.float32([20, 12, 6, 0])
    visits = np.zeros((12, 20), np.uint32)
    lib.slime_deposit(agents, visits, np.uint32([20, 12]), threads=300)
    expected = np.histogram2d(agents[:, 1], agents[:, 0], (12, 20), ((0, 12), (0, 20)))[0]
    np.testing.assert_array_equal(visits, expected)
    trail, after = random.random((12, 20), np.float32), np.zeros((12, 20), np.float32)
    lib.slime_diffuse(trail, after, visits, threads=(20, 12))
    near = sum(np.roll(trail, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)) / 9
    values = 0.92 * (0.5 * trail + 0.5 * near) + np.minimum(expected, 4)
    np.testing.assert_allclose(after, values, rtol=1e-5)
    assert not visits.any()


def test_equalise():
    module, _ = load("equalise")
    grey = np.random.default_rng(0).normal(100, 20, (60, 70)).clip(0, 255).astype(np.uint8)
    counts = np.bincount(grey.ravel(), minlength=256)
    np.testing.assert_array_equal(module.histogram(grey), counts)
    ranks = (255 * counts.cumsum() + grey.size // 2) // grey.size
    np.testing.assert_array_equal(module.equalised(grey), ranks[grey])


def test_ising():
    ellipk = pytest.importorskip("scipy.special").ellipk
    module, _ = load("ising")
    coupling = 0.35
    spins = np.random.default_rng(0).choice(np.int8([-1, 1]), (256, 256))
    spins = module.sweeps(spins, coupling, 200).astype(int)
    energy = -(spins * (np.roll(spins, 1, 0) + np.roll(spins, 1, 1))).mean()
    k = 2 * np.sinh(2 * coupling) / np.cosh(2 * coupling) ** 2
    factor = 1 + 2 / np.pi * (2 * np.tanh(2 * coupling) ** 2 - 1) * ellipk(k**2)
    onsager = -factor / np.tanh(2 * coupling)
    assert abs(energy - onsager) < 0.03


def test_flame_and_buddhabrot_count_what_they_draw():
    _, lib = load("flame")
    visits = np.zeros((40, 60, 4), np.uint32)
    lib.flame_iterate(visits, np.uint32([60, 40]), 100, threads=500)
    total = visits[..., 0].sum()
    assert 0.5 * 80 * 500 < total <= 80 * 500
    assert (visits[..., 1:] <= 255 * visits[..., :1]).all()
    _, lib = load("buddhabrot")
    planes = np.zeros((3, 48, 64), np.uint32)
    limits = np.uint32([500, 100, 20, 0])
    lib.buddhabrot_orbits(planes, np.uint32([64, 48]), limits, 40, threads=2000)
    # The figure is symmetric to the real axis, which stands upright.
    halves = planes.astype(float).sum(0)[:, :32].sum(), planes.astype(float).sum(0)[:, 32:].sum()
    assert abs(halves[0] / halves[1] - 1) < 0.1


def test_path_tracer_and_ray_marcher():
    module, lib = load("path_tracer")
    spheres = module.SPHERES.view(lib.trace_paths.dtype("spheres"))
    sums = np.zeros((24, 32, 4), np.float32)
    lib.trace_paths(sums, spheres, len(spheres), 8, 1, threads=(32, 24))
    np.testing.assert_array_equal(sums[..., 3], 8)
    light = sums[..., :3] / 8
    assert (light >= 0).all()
    assert light.max() <= 7 + 1e-4  # nothing is brighter than the lamp
    left, right = light[:, :8].mean((0, 1)), light[:, -8:].mean((0, 1))
    assert left[0] > left[2]  # a red wall
    assert right[2] > right[0]  # a blue one
    image = load("ray_marcher")[0].picture(32).astype(int)
    assert (image[:3, :, 2] > image[:3, :, 0]).all()  # the sky
