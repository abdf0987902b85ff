"""The images of the documentation: each is shown by a page, described in words, and small."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.pages import DOCS, ROOT, SITE

PAGES = [ROOT / "README.md", *SITE, *sorted((ROOT / "examples").glob("**/*.md"))]
SUFFIXES = {".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp"}
IMAGES = sorted(
    path for path in DOCS.glob("**/*") if path.suffix in SUFFIXES and "_build" not in path.parts
)
REFERENCE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
LARGEST = 160_000  # bytes of one vector image
LARGEST_SUM = 2_000_000
LEAST_WORDS = 4  # of a text that says what an image shows


def references(page):
    """(text, file) of every image of a page that is a file of this project."""
    found = REFERENCE.findall(page.read_text(encoding="utf-8"))
    return [(text, (page.parent / link).resolve()) for text, link in found if "://" not in link]


ALL = [(page, text, path) for page in PAGES for text, path in references(page)]


def test_there_are_pages_with_images():
    assert len(IMAGES) > 10
    assert len(ALL) >= len(IMAGES)


@pytest.mark.parametrize("image", IMAGES, ids=lambda path: path.name)
def test_every_image_is_shown_by_a_page(image):
    assert image in [path for _, _, path in ALL]


@pytest.mark.parametrize(("page", "text", "path"), ALL, ids=lambda of: getattr(of, "name", None))
def test_every_image_of_a_page_exists_and_is_described(page, text, path):
    assert path.is_file(), f"{page.name} shows {path.name}, which is not there"
    assert len(text.split()) >= LEAST_WORDS, f"{page.name}: {path.name} is described as {text!r}"


@pytest.mark.parametrize(
    "image", [path for path in IMAGES if path.suffix == ".svg"], ids=lambda of: of.name
)
def test_a_vector_image_is_small_and_well_formed(image):
    assert image.stat().st_size <= LARGEST
    assert ElementTree.parse(image).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_all_images_together_are_small():
    assert sum(path.stat().st_size for path in IMAGES) <= LARGEST_SUM


def test_the_list_of_figures_has_every_figure_and_no_other():
    listed = re.findall(r"^\| \[([^\]]+)\]\(figures/([^)]+)\)", (DOCS / "figures.md").read_text(), re.M)
    names = [file for _, file in listed]
    assert sorted(names) == sorted(path.name for path in (DOCS / "figures").iterdir())
    assert all(Path(file).stem == name for name, file in listed)
