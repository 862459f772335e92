"""python3 -m unittest test_app, in this folder, with the packages of requirements.txt."""

import base64
import io
import tempfile
import unittest
from pathlib import Path

from PIL import Image

import app
import images


class Imaging(unittest.TestCase):
    """The service, without a network."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        app.FOLDER = Path(cls.folder.name)
        for name in ("gradient", "checks"):
            getattr(images, name)().save(app.FOLDER / f"{name}.png")
        cls.client = app.app.test_client()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def test_a_rectangle_is_the_part_of_the_image(self) -> None:
        response = self.client.get("/crop?image=checks&x=30&y=0&width=4&height=2")
        self.assertEqual(response.status_code, 200)
        part = Image.open(io.BytesIO(base64.b64decode(response.data)))
        self.assertEqual(part.size, (4, 2))
        row = [part.getpixel((x, 0))[0] for x in range(4)]
        self.assertEqual(row, [0, 0, 255, 255])

    def test_wrong_requests_are_refused(self) -> None:
        for query, status in (
            ("image=none", 404),
            ("image=../app", 404),
            ("x=-1", 400),
            ("x=1000&width=100", 400),
            ("width=0", 400),
            ("width=x", 400),
        ):
            self.assertEqual(self.client.get(f"/crop?{query}").status_code, status, query)

    def test_it_is_ready_and_lists_its_images(self) -> None:
        self.assertEqual(self.client.get("/readyz").status_code, 200)
        self.assertEqual(self.client.get("/healthz").status_code, 200)
        self.assertEqual(sorted(self.client.get("/images").json), ["checks", "gradient"])


if __name__ == "__main__":
    unittest.main()
