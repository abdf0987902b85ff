"""The report in a browser: renders without complaint, loads nothing, fits a phone, in light and dark."""

import io

import optpess as op
import pytest
from optpess.report import runs
from support import chromium

from . import records

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.skipif(
    chromium.find() is None, reason="no Chromium: the Debian package chromium has one"
)
KINDS = ("one run", "a comparison", "a void run", "a rollout", "several parts")
PHONE, WIDE = 390, 1280
# The least contrast of texts that the Web Content Accessibility Guidelines allow (level AA).
LEAST_CONTRAST = 4.5
# The contrast of the text of an element with the nearest background that is not transparent.
CONTRAST = """(element => {
  const parts = text => text.match(/[\\d.]+/g).map(Number);
  const behind = found => parts(getComputedStyle(found).backgroundColor);
  const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => linear(v / 255));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const style = getComputedStyle(element);
  const inPicture = element.namespaceURI.endsWith("svg");
  let ground = element;
  while (behind(ground)[3] === 0) ground = ground.parentElement;
  const [a, b] = [parts(inPicture ? style.fill : style.color), behind(ground)].map(luminance);
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
})"""


@pytest.fixture(scope="module")
def browser():
    with chromium.Chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    files = {kind: tmp_path_factory.mktemp("page") / "report.html" for kind in KINDS}
    for kind, file in files.items():
        file.write_text(records.page_of(kind), encoding="utf-8")
    return files


def complaints(browser):
    """What the console shows, and what was asked for besides the page itself."""
    console = [browser.named(name) for name in ("Log.entryAdded", "Runtime.consoleAPICalled")]
    requests = [event["request"]["url"] for event in browser.named("Network.requestWillBeSent")]
    return [*console[0], *console[1], *browser.named("Runtime.exceptionThrown"), *requests[1:]]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, PHONE])
@pytest.mark.parametrize("kind", KINDS)
def test_the_page_renders_without_complaint_and_is_not_wider_than_the_window(
    browser, pages, kind, width, dark
):
    browser.open(pages[kind], width=width, dark=dark)
    assert complaints(browser) == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.compatMode") == "CSS1Compat"
    sizes = browser.evaluate(
        "[...document.querySelectorAll('figure')].map(figure => figure.getBoundingClientRect())"
        ".map(box => [box.left, box.right, box.height])"
    )
    assert len(sizes) >= 1
    assert all(0 <= left < right <= width and height > 60 for left, right, height in sizes)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(browser, pages, dark):
    for kind in ("a void run", "a comparison"):
        browser.open(pages[kind], dark=dark)
        for what in ("h1", ".lead", ".eyebrow", ".note", ".setting li", "figcaption", "summary", "code",
                     "th", "td", "footer p", "svg text"):  # fmt: skip
            least = browser.evaluate(
                f"Math.min(...[...document.querySelectorAll({what!r})].map({CONTRAST}))"
            )
            assert least >= LEAST_CONTRAST, what
    browser.open(pages["a void run"], dark=dark)
    for what in (".alarm p", ".alarm strong"):
        assert browser.evaluate(f"{CONTRAST}(document.querySelector({what!r}))") >= LEAST_CONTRAST


def test_a_long_name_does_not_widen_the_page(browser, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "pictures", lambda _: [])
    names = ["x" * 300, "y" * 300]
    found = op.Comparison(dict.fromkeys(names, records.run(1)), dict.fromkeys(names, 1.0))
    browser.open(op.write_report(tmp_path / "report.html", found, title="z" * 300), width=PHONE)
    assert browser.evaluate("document.documentElement.scrollWidth") <= PHONE


@pytest.mark.parametrize(("width", "media"), [(1080, "screen"), (700, "print")])
def test_beside_a_long_name_its_results_can_be_seen(browser, tmp_path, monkeypatch, width, media):
    monkeypatch.setattr(runs, "pictures", lambda _: [])
    names = ["x" * 200, "short"]
    found = op.Comparison(dict.fromkeys(names, records.run(1)), dict.fromkeys(names, 1.0))
    browser.open(op.write_report(tmp_path / "report.html", found), width=width, media=media)
    third = "document.querySelector('.wide td:nth-child(3)').getBoundingClientRect()"
    assert browser.evaluate(f"{third}.right") <= width


def background(browser):
    return browser.evaluate("getComputedStyle(document.body).backgroundColor")


def test_the_page_is_light_or_dark_as_the_reader_wants_and_light_on_paper(browser, pages):
    found = {}
    for dark in (False, True):
        browser.open(pages["one run"], dark=dark)
        found[dark] = background(browser)
    assert found[False] == "rgb(255, 255, 255)"
    assert found[True] != found[False]
    browser.open(pages["one run"], dark=True, media="print")
    assert background(browser) == found[False]


def test_the_page_can_be_printed(browser, pages):
    browser.open(pages["one run"], media="print")
    assert browser.printed().startswith(b"%PDF")
    assert browser.evaluate("document.querySelector('details').scrollHeight") > 300  # unfolded


def test_a_wide_table_scrolls_in_a_box_of_its_own(browser, pages):
    browser.open(pages["a comparison"], width=PHONE)
    inner, outer = browser.evaluate(
        "(box => [box.scrollWidth, box.clientWidth])(document.querySelector('.wide'))"
    )
    assert inner > outer
    assert outer < PHONE


def test_pictures_are_drawn_in_both_schemes(browser, pages):
    image = pytest.importorskip("matplotlib.image")
    for dark in (False, True):
        browser.open(pages["one run"], dark=dark)
        browser.evaluate("document.querySelector('figure').scrollIntoView()")
        pixels = image.imread(io.BytesIO(browser.screenshot()))[..., :3]
        ground = pixels[5, 5]  # beside the text
        drawn = (abs(pixels - ground) > 0.2).any(axis=2).mean()
        assert 0.005 < drawn < 0.5


def test_no_script_can_run_in_the_page(browser, pages):
    browser.open(pages["one run"])
    browser.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))"
    )
    assert browser.evaluate("window.ran") is None


def test_a_complaint_would_be_found(browser, tmp_path):
    page = tmp_path / "faulty.html"
    page.write_text(
        "<!DOCTYPE html><img src='missing.png'><script>console.error('seen'); throw Error()</script>"
    )
    browser.open(page)
    assert len(browser.named("Runtime.consoleAPICalled")) == 1
    assert len(browser.named("Runtime.exceptionThrown")) == 1
    assert any("missing.png" in str(each) for each in complaints(browser))


def test_a_name_with_markup_is_shown_as_text(browser, pages):
    browser.open(pages["a comparison"])
    assert browser.evaluate("document.scripts.length") == 0
    assert records.HOSTILE in browser.evaluate("document.body.innerText")
