"""Cuts a rectangle out of an image and returns it as PNG in Base64: a small service to load.

The application of source 4 of docs/sources.md, rebuilt from its description (section 5.2): one tier, no state,
some input/output (it reads an image for each request), CPU time (it decodes, cuts and encodes) and memory.

    GET /crop?image=NAME&x=0&y=0&width=200&height=200    the rectangle, as text
    GET /images                                          names and sizes of the images, as JSON
    GET /healthz                                         200 while the process works
    GET /readyz                                          200 if an image can be read
"""

import base64
import io
import os
from pathlib import Path

from flask import Flask, Response, abort, jsonify, request
from PIL import Image

FOLDER = Path(os.environ.get("IMAGES", Path(__file__).with_name("images")))

app = Flask(__name__)


def open_image(name: str) -> Image.Image:
    """The image with this name; 404 if there is none."""
    path = FOLDER / f"{name}.png"
    # Only names of files in the folder: no separators, no parents.
    if path.parent != FOLDER or not path.is_file():
        abort(404, f"no image {name!r}; GET /images lists them")
    return Image.open(path)


def number(name: str, default: int) -> int:
    """A whole number from 0 of the query; 400 if it is none."""
    text = request.args.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        abort(400, f"{name}: write a whole number from 0 to 999999")
    return int(text)


@app.get("/crop")
def crop() -> Response:
    """The rectangle as PNG in Base64."""
    with open_image(request.args.get("image", "gradient")) as image:
        x, y = number("x", 0), number("y", 0)
        width, height = number("width", 200), number("height", 200)
        if width == 0 or height == 0 or x + width > image.width or y + height > image.height:
            abort(400, f"the rectangle must lie within {image.width} x {image.height} pixels")
        part = image.crop((x, y, x + width, y + height))
        out = io.BytesIO()
        part.save(out, format="PNG")
    return Response(base64.b64encode(out.getvalue()), mimetype="text/plain")


@app.get("/images")
def images() -> Response:
    """Names and sizes."""
    sizes = {}
    for path in sorted(FOLDER.glob("*.png")):
        with Image.open(path) as image:
            sizes[path.stem] = {"width": image.width, "height": image.height}
    return jsonify(sizes)


@app.get("/healthz")
def healthz() -> Response:
    """The process works."""
    return Response("ok\n", mimetype="text/plain")


@app.get("/readyz")
def readyz() -> Response:
    """An image can be read."""
    first = next(iter(sorted(FOLDER.glob("*.png"))), None)
    if first is None:
        abort(503, "there are no images: run python3 images.py")
    with Image.open(first) as image:
        image.verify()
    return Response("ok\n", mimetype="text/plain")
