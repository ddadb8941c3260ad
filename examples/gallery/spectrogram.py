"""A spectrogram of a synthetic bird song: a Fourier transform in each threadgroup."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import metalloid as mtl

WINDOW = 1024


def song(count, rate=22050, seed=5):
    """Whistles that rise and fall, with overtones and a little noise."""
    random = np.random.default_rng(seed)
    t = np.arange(count) / rate
    sound = 0.02 * random.standard_normal(count)
    length = count / rate
    for start in np.linspace(0.02, 0.86, 9) * length:
        inside = (t >= start) & (t < start + 0.12 * length)
        u = (t[inside] - start) / (0.12 * length)
        base, swing, trill = (
            random.uniform(1500, 3500),
            random.uniform(-1200, 2200),
            random.uniform(8, 30),
        )
        pitch = base + swing * u**2 + random.uniform(50, 500) * np.sin(2 * np.pi * trill * u * 0.4)
        phase = 2 * np.pi * np.cumsum(pitch) / rate
        loudness = np.sin(np.pi * u) ** 2
        sound[inside] += loudness * (
            np.sin(phase) + 0.25 * np.sin(2 * phase) + 0.1 * np.sin(3 * phase)
        )
    return sound.astype(np.float32)


def spectra(samples, windows, hop):
    """Decibels of 512 frequencies for each window."""
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    decibels = np.zeros((windows, WINDOW // 2), np.float32)
    lib.spectrogram(samples, decibels, hop, threads=256 * windows, group_size=256)
    return decibels


def picture(size=512, hop=96):
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    decibels = spectra(song(WINDOW + hop * size), size, hop)
    image = np.zeros((size * 3 // 4, size, 4), np.uint8)
    lib.spectrogram_show(image, decibels, threads=image.shape[1::-1])
    return image


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "spectrogram.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
