"""Writes the images of the application: the same bytes on every machine.

    python3 images.py [FOLDER]
"""

import random
import sys
from pathlib import Path

from PIL import Image

WIDTH, HEIGHT = 1024, 768


def gradient() -> Image.Image:
    """Smooth: its PNG is small."""
    return Image.linear_gradient("L").resize((WIDTH, HEIGHT)).convert("RGB")


def noise() -> Image.Image:
    """Random pixels: its PNG is as large as it can be."""
    pixels = random.Random(1).randbytes(WIDTH * HEIGHT * 3)
    return Image.frombytes("RGB", (WIDTH, HEIGHT), pixels)


def checks() -> Image.Image:
    """Squares of 32 pixels."""
    size = (WIDTH // 32, HEIGHT // 32)
    image = Image.new("L", size)
    image.putdata([255 * ((x + y) % 2) for y in range(size[1]) for x in range(size[0])])
    return image.resize((WIDTH, HEIGHT), Image.Resampling.NEAREST).convert("RGB")


def main() -> None:
    """Writes all of them."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("images"))
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in (("gradient", gradient), ("noise", noise), ("checks", checks)):
        draw().save(folder / f"{name}.png")


if __name__ == "__main__":
    main()
