"""Pictures: their names and texts, and their form as SVG."""

import re
from xml.etree import ElementTree

import numpy as np
import optpess as op
import pytest

pytest.importorskip("matplotlib", reason="plots are an optional extra")

from optpess.plot import pictures

from plot import cases

FEW = ("OptPessMix", "OptPessLP", "OptPessPrimalDual")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def few():
    return pictures({name: cases.run(name) for name in FEW})


@pytest.fixture(scope="module")
def many():
    runs = {name: cases.run(name) for name in (*FEW, "OPDOP")}
    return pictures(runs | {f"number {n}": cases.run("OPDOP", seed=n) for n in range(4)})


def test_there_is_a_picture_for_each_quantity(few, many):
    names = ["cost", "reward", "gain", "regret", "violations", "mixture", "leaving"]
    assert [picture.name for picture in few] == names
    assert [picture.name for picture in many] == names
    with_multiplier = pictures({"ours": cases.run("OptPessPrimalDual")}, multiplier=True)
    assert [picture.name for picture in with_multiplier][5:] == ["multiplier", "leaving"]


def test_texts_say_what_can_be_seen(few):
    by_name = {picture.name: picture for picture in few}
    run = cases.run("OptPessLP")
    last = np.median(run.deployed_cost[:, -1, 0])
    assert f"OptPessLP {last:.4g}" in by_name["cost"].alt
    assert "limit 0.6" in by_name["cost"].alt
    assert "OptPessMix: none" in by_name["violations"].alt
    for picture in few:
        assert picture.title[0].isupper()
        assert picture.caption.endswith(".")
        assert picture.alt.endswith(".")


def test_many_learners_have_small_panels_with_the_same_axes(many):
    cost = many[0].figure
    assert len(cost.axes) == 8
    assert len({(axis.get_xlim(), axis.get_ylim()) for axis in cost.axes}) == 1
    titles = [axis.get_title("left") for axis in cost.axes]
    assert titles[:4] == [*FEW, "OPDOP"]
    mixture = next(picture for picture in many if picture.name == "mixture").figure
    assert len(mixture.axes) == 2  # only one learner has a mixture


def test_an_svg_is_well_formed_and_the_same_each_time(few, many):
    again = pictures({name: cases.run(name) for name in FEW})
    for picture, twin in zip(few, again, strict=True):
        text = picture.svg()
        assert text == picture.svg() == twin.svg()
    for picture in (*few, *many):
        root = ElementTree.fromstring(picture.svg())
        assert root.tag == f"{SVG}svg"
        assert root.get("aria-label") == picture.alt
        assert root.get("role") == "img"


def test_drawing_to_another_form_in_between_changes_nothing(few, tmp_path):
    before = few[3].svg()
    few[3].save(tmp_path / "regret.png")
    assert few[3].svg() == before


def test_identifiers_of_several_pictures_do_not_clash(few):
    found = [re.findall(r'\bid="([^"]*)"', picture.svg()) for picture in few]
    for picture, names in zip(few, found, strict=True):
        assert names
        assert len(set(names)) == len(names)
        assert all(name.startswith(f"{picture.name}-") for name in names)
        text = picture.svg()
        used = re.findall(r'href="#([^"]*)"', text) + re.findall(r"url\(#([^)]*)\)", text)
        assert used
        assert set(used) <= set(names)


def test_an_svg_stands_in_light_and_dark_pages(few):
    text = few[0].svg()
    assert "currentColor" in text
    assert "#1e293b" not in text
    assert "<style" not in text  # a rule would hold for the whole page
    assert "fill:#ffffff" not in text
    alone = few[0].svg(background="white")
    assert "currentColor" not in alone
    assert "fill:#ffffff" in alone


def test_texts_of_an_svg_are_texts(few):
    words = [each.text for each in ElementTree.fromstring(few[0].svg()).iter(f"{SVG}text")]
    assert {"OptPessMix", "limit 0.6", "episodes"} <= set(words)


def test_shorter_places_leave_texts_and_opacities_as_they_are(few):
    # Numbers in texts were once rounded with those of the places: by at most 0.9 in place of 0.895.
    by_name = {picture.name: picture for picture in few}
    names = {'x="1.2345"': cases.run("OptPessLP")}
    odd = pictures(names)[0]
    for picture in (by_name["violations"], by_name["cost"], odd):
        root = ElementTree.fromstring(picture.svg())
        shown = {each.text for each in root.iter(f"{SVG}text")}
        drawn = {
            line
            for axis in picture.figure.axes
            for text in cases.texts(axis)
            for line in text.split("\n")
        }
        assert drawn <= shown
    assert "fill-opacity:0.28" in by_name["cost"].svg()


def test_an_svg_is_small_and_has_no_date(few, many):
    for picture in (*few, *many):
        text = picture.svg()
        assert len(text) < 60_000
        assert "<metadata" not in text
        assert "dc:date" not in text


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".svg", b"<?xml"), (".SVG", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")],
)
def test_a_picture_is_saved_by_its_suffix_and_to_the_same_bytes(few, tmp_path, suffix, start):
    first, second = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
    few[0].save(first)
    few[0].save(str(second))
    assert first.read_bytes().startswith(start)
    assert first.read_bytes() == second.read_bytes()


def test_another_suffix_is_refused_and_nothing_is_written(few, tmp_path):
    with pytest.raises(op.InvalidInputError, match=r"must be one of \.pdf, \.png, \.svg"):
        few[0].save(tmp_path / "cost.jpeg")
    with pytest.raises(op.InvalidInputError, match="path is 3"):
        few[0].save(3)
    assert list(tmp_path.iterdir()) == []
