"""README's pictures of the board and of an upgrade: ``python docs/pictures.py SITE UPGRADE``.

SITE is a folder that ``bench leaderboard`` wrote, UPGRADE a page of ``bench upgrade --report``. A
Chromium draws them; ``pip install playwright`` and a browser are needed.
"""

import io
import shutil
import sys
from pathlib import Path

FIGURES = Path(__file__).parent / "figures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_SIZE = {"width": 1280, "height": 800}
_COLOURS = 128


def draw(site: Path, upgrade: Path) -> list[Path]:
    """Write ``board.png`` and ``upgrade.png``: the first screens of both pages, in few colours."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    pages = {"board": site / "boards" / "extended-class-cifar100-small.html", "upgrade": upgrade}
    written = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport=_SIZE, color_scheme="light")
        for name, file in pages.items():
            page.goto(file.resolve().as_uri())
            page.wait_for_timeout(1000)
            if name == "board":  # the table is what it is about
                page.locator("#table").evaluate("e => e.scrollIntoView()")
            image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            small = image.resize((960, 600), Image.Resampling.LANCZOS)
            path = FIGURES / f"{name}.png"
            small.quantize(_COLOURS).save(path, optimize=True)
            written.append(path)
        browser.close()
    return written


if __name__ == "__main__":
    for drawn in draw(*map(Path, sys.argv[1:3])):
        sys.stdout.write(f"{drawn}\n")
