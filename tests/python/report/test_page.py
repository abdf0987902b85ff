"""The page of a report: well-formed, loads nothing, safe to open, and says what it must say."""

import re
from html.parser import HTMLParser
from itertools import pairwise

import optpess as op
import pytest
from optpess.display import percent
from optpess.plot import Picture
from optpess.report import runs, words
from optpess.report.pictures import gallery
from optpess.run.violations import above_text

from . import records
from .records import EVERY, HOSTILE, page_of

Figure = pytest.importorskip("matplotlib.figure").Figure
# Tags of HTML that have no end.
VOID = {"meta", "br", "hr", "img", "link", "input"}
# What loads something or runs something.
FORBIDDEN = {
    "script",
    "iframe",
    "object",
    "embed",
    "link",
    "img",
    "audio",
    "video",
    "form",
    "base",
    "image",
}


class Page(HTMLParser):
    """Checks that tags are closed in order, and keeps what the tests ask for."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.text, self.headings = [], [], "", []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"an attribute of {tag} is there twice"
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append([int(tag[1]), ""])

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data
        if self.open and re.fullmatch(r"h[1-6]", self.open[-1]):
            self.headings[-1][1] += data

    def attributes(self, name):
        return [found[name] for _, found in self.tags if name in found]

    def within(self, tag):
        return [attributes for found, attributes in self.tags if found == tag]


def section(html, title):
    """The section with this title."""
    found = re.search(rf"<section[^>]*><h2[^>]*>{title}</h2>(.*?)</section>", html, re.DOTALL)
    assert found, f"no section {title}"
    return found[1]


@pytest.mark.parametrize("kind", EVERY)
def test_the_page_is_well_formed_and_complete(kind):
    html = page_of(kind)
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>\n")
    assert page.within("html") == [{"lang": "en"}]
    assert page.within("meta")[0] == {"charset": "utf-8"}
    assert len(page.within("title")) == 1 + len(page.within("svg"))
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.within("meta")
    assert len(page.within("main")) == 1


@pytest.mark.parametrize("kind", EVERY)
def test_headings_are_in_order(kind):
    levels = [level for level, _ in Page(page_of(kind)).headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))


@pytest.mark.parametrize("kind", EVERY)
def test_the_page_refers_to_nothing_outside_of_it(kind):
    html = page_of(kind)
    page = Page(html)
    assert not FORBIDDEN & {tag for tag, _ in page.tags}
    assert not re.search(r"https?://|@import|file:|javascript:", html)
    assert not [name for _, found in page.tags for name in found if name.startswith("on")]
    addresses = page.attributes("href") + page.attributes("xlink:href") + page.attributes("src")
    assert all(address.startswith("#") for address in addresses)
    assert all(place.startswith("#") for place in re.findall(r"url\(([^)]*)\)", html))
    policies = [found["content"] for found in page.within("meta") if "http-equiv" in found]
    assert policies == [
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    ]


@pytest.mark.parametrize("kind", EVERY)
def test_identifiers_are_unique_and_what_is_referred_to_exists(kind):
    html = page_of(kind)
    page = Page(html)
    names = page.attributes("id")
    assert len(names) == len(set(names))
    referred = [address[1:] for address in page.attributes("href") + page.attributes("xlink:href")]
    referred += re.findall(r"url\(#([^)]*)\)", html)
    referred += [name for found in page.attributes("aria-labelledby") for name in found.split()]
    assert referred
    assert set(referred) <= set(names)


@pytest.mark.parametrize("kind", EVERY)
def test_every_picture_is_described_for_those_who_do_not_see_it(kind):
    html = page_of(kind)
    pictures = re.findall(r"<figure.*?</figure>", html, re.DOTALL)
    assert len(pictures) == html.count("<svg")
    assert len(pictures) >= (1 if kind == "a rollout" else 4)
    for picture in pictures:
        assert len(re.search(r'<svg role="img" aria-label="([^"]*)"', picture)[1]) > 20
        assert re.search(r"<svg[^>]*><title>[^<]{3,}</title>", picture)
        assert re.search(r"<figcaption>[^<]{20,}</figcaption>", picture)


@pytest.mark.parametrize("kind", EVERY)
def test_pictures_take_the_colours_and_the_width_of_the_page(kind):
    for opening in re.findall(r"<svg[^>]*>", page_of(kind)):
        assert "viewBox" in opening
        assert not re.search(r"\s(width|height)=", opening)
    assert "currentColor" in page_of(kind)
    assert "<style" not in page_of(kind).split("</head>")[1]  # which would reach beyond a picture


def test_texts_in_a_picture_stay_as_they_are():
    text = 'id="x" href="#y" xmlns="z" 0.125 <b>'
    figure = Figure()
    figure.text(0.1, 0.5, text)
    picture = Picture("name", "A title", "A caption", 'A text with "quotes"', figure)
    html = gallery([picture], "part1-")
    page = Page(html)
    assert text in page.text
    assert all(name.startswith("part1-name-") for name in page.attributes("id"))
    assert "xmlns" not in [name for _, found in page.tags for name in found]


def test_a_picture_of_violations_is_there_if_there_is_something_to_compare():
    assert "part1-violations-" in page_of("a comparison")
    assert "part1-violations-" not in page_of("one run")


def test_what_scrolls_can_be_reached_with_the_keyboard_and_has_a_name():
    boxes = [found for _, found in Page(page_of("a comparison")).tags if "tabindex" in found]
    assert boxes
    assert all(found["role"] == "region" and found["aria-label"] for found in boxes)


@pytest.mark.parametrize("kind", ["one replicate", "a rollout"])
def test_names_that_users_give_are_texts_and_nothing_else(kind):
    html = page_of(kind, HOSTILE)
    page = Page(html)
    assert "<script" not in html
    assert "alert(1)" in page.text
    assert page.headings[0] == [1, HOSTILE]


def test_a_hostile_name_of_a_learner_is_shown_as_it_is():
    page = Page(page_of("a comparison"))
    assert page.text.count(HOSTILE) >= 3  # in the table, the guarantees and the parameters


def test_the_same_records_give_the_same_page(tmp_path):
    again = op.write_report(tmp_path / "report.html", *EVERY["several parts"]())
    assert again.read_text("utf-8") == page_of("several parts")


def test_a_saved_record_gives_the_page_of_the_record(tmp_path):
    records.run().save(tmp_path / "run.npz")
    records.comparison().save(tmp_path / "comparison.npz")
    loaded = op.load_run(tmp_path / "run.npz"), op.Comparison.load(tmp_path / "comparison.npz")
    for record, kind in zip(loaded, ("one run", "a comparison"), strict=True):
        made = op.write_report(tmp_path / "report.html", record)
        assert made.read_text("utf-8") == page_of(kind)


# What it says


def test_the_first_sentence_says_how_often_the_limit_was_exceeded():
    html = page_of("one run")
    assert '<p class="lead">No episode above the limit in 600.' in html
    assert "Guarantee: every episode within the limits, with a probability of at least 95 %." in html


def test_the_share_of_what_is_possible_is_that_of_the_record():
    run = records.run()
    each = run.gain[:, -1].mean() / 200
    share = each / (run.optimal_value - run.baseline_value)
    assert f"An episode earned {each:.4g} more than the baseline on average" in page_of("one run")
    assert f", {percent(share)} of what is possible" in page_of("one run")


def test_violations_are_a_share_of_the_episodes():
    above = [name for name, run in records.comparison().runs.items() if run.violating_episodes.any()]
    free = records.run_of("free")
    often, worst = above_text(free), free.worst_violation.max()
    text = Page(page_of("a comparison")).text
    assert above == ["dual", "free"]
    assert f"2 of 4 learners had no episode above the limit: mix and {HOSTILE}." in text
    assert f"most often: in {often}, by up to {worst:.4g}." in text
    assert f">{often}<" in section(page_of("a comparison"), "Results")


def test_the_table_of_a_comparison_has_a_row_for_each_learner():
    results = section(page_of("a comparison"), "Results")
    assert results.count("<tr>") == 1 + len(records.comparison().runs)
    row = records.comparison().table[0]
    assert f"{row['regret']:.4g} ±" in results
    assert "us per episode" in results


def test_processor_times_that_are_not_known_are_left_out():
    assert "us per episode" not in page_of("several runs")


def test_a_comparison_of_many_learners_has_all_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "pictures", lambda _: [])  # 24 small panels for each quantity take long
    many = {f"number {i}": records.run() for i in range(24)}
    found = op.Comparison(many, dict.fromkeys(many, 1.0))
    html = op.write_report(tmp_path / "report.html", found).read_text("utf-8")
    assert section(html, "Results").count("<tr>") == 25
    assert "<h1>24 learners on pair</h1>" in html


def test_the_table_of_one_run_has_its_totals():
    results = section(page_of("one run"), "Results")
    assert f"<td>{records.run().gain[:, -1].mean():.4g}</td>" in results
    assert "standard error" in results


def test_runs_of_one_problem_share_a_table_under_unlike_names():
    html = page_of("several runs")
    assert html.count("<section") == 5
    results = section(html, "Results")
    assert re.findall(r"<tr><td>(.*?)</td>", results) == ["OptPess-Mix", "OptPess-LP", "OptPess-Mix (2)"]


def test_records_that_cannot_be_compared_have_parts_of_their_own():
    page = Page(page_of("several parts"))
    titles = [text for level, text in page.headings if level == 2]
    assert len(titles) == 3
    assert page.attributes("href")[:3] == [f"#part{number}" for number in range(1, 4)]


def test_runs_of_different_lengths_are_not_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "pictures", lambda _: [])
    made = op.write_report(tmp_path / "report.html", records.run(3, 200), records.run(1, 1))
    assert len(Page(made.read_text("utf-8")).within("article")) == 2


def test_what_differs_between_the_runs_of_a_comparison_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "pictures", lambda _: [])
    second = op.simulate(records.pair().model, records.mix(records.pair()), episodes=30, seed=7)
    found = op.Comparison({"long": records.run(), "short": second}, {"long": 1.0, "short": 1.0})
    html = op.write_report(tmp_path / "report.html", found).read_text("utf-8")
    text = Page(html).text
    assert "30 to 200 episodes a replicate" in text
    assert "seed 0; 7" in text


def test_runs_with_other_seeds_share_a_table(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "pictures", lambda _: [])
    second = op.simulate(
        records.pair().model, records.mix(records.pair()), episodes=200, seed=7, replicates=2
    )
    made = op.write_report(tmp_path / "report.html", records.run(), second)
    assert "200 episodes a replicate" in Page(made.read_text("utf-8")).text
    assert section(made.read_text("utf-8"), "Results").count("<tr>") == 3


def test_the_problem_is_named_if_the_zoo_has_it():
    assert "<h1>OptPess-Mix on pair</h1>" in page_of("one run")
    assert "pair, of optpess.zoo: 2 states, 2 actions, 2 steps an episode" in page_of("one run")
    assert "of optpess.zoo" not in page_of("units")


def test_a_void_guarantee_cannot_be_missed():
    html = page_of("a void run")
    assert f"contradicts what the learner was told: {records.void().void_because}." in html
    header = html.split("</header>")[0]
    assert '<div class="alarm" role="note"><p><strong>Void, no guarantee holds.</strong>' in header
    assert "What it rests on" not in html


def test_no_guarantee_is_said_plainly():
    text = Page(section(page_of("a comparison"), "Guarantees")).text
    assert "free: none" in text
    assert "it is no promise for others" in text
    assert "The bonus was scaled by hand, Scaled(factor=0.02)" in page_of("an old run")


def test_a_run_too_short_for_its_theorem_is_not_said_to_be_guaranteed():
    horizon = records.run_of("dual").guarantee.tightening_horizon
    text = Page(section(page_of("a comparison"), "Guarantees")).text
    assert "dual: nothing for so few episodes" in text
    assert f"each of the first {horizon:,} episodes" in text
    assert f"With a guarantee: mix and {HOSTILE}." in Page(page_of("a comparison")).text


def test_what_a_guarantee_rests_on_is_listed():
    guarantee = section(page_of("one run"), "Guarantee")
    assert "What it rests on" in guarantee
    assert "of at most 0.135, below the limit 0.6 (Assumption 2.2)" in guarantee
    assert "Every observed cost lies in its range." in guarantee
    assert "The baseline costs 0.135, as safe as was stated." in guarantee


def test_an_audit_is_counted():
    made = sum(finding.made for audit in records.with_units().audits for finding in audit.values())
    assert f"Of {made:,} checks of the audit 0 failed." in page_of("units")


def test_several_limits_are_named():
    text = Page(page_of("three limits")).text
    limits = [f"{limit:g}" for limit in records.several_limits().cost_limits]
    assert f"cost limits {limits[0]}, {limits[1]} and {limits[2]}" in text
    assert "No episode above a limit in 120." in text


def test_units_are_said():
    text = Page(page_of("units")).text
    assert "a reward of one step lies in 0 to 10, a cost in 0 to 4 and 1 to 2." in text
    assert "in parts of the ranges" in text
    assert "lie between 0 and 1" in Page(page_of("one run")).text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.6, "0.6"),
        (2.01053, "2.01053"),
        (1000.0, "1,000"),
        (1234.5, "1,234.5"),
        (731461.65, "731,462"),
        (8e6, "8,000,000"),
        (-5e6, "-5,000,000"),
        (0.0, "0"),
    ],
)
def test_stated_numbers_are_written_out(value, text):
    assert words.number(value) == text
    assert words.limits_text([value, 1.0]) == f"the limits {text} and 1"


def test_a_record_of_an_earlier_version_is_reported_as_far_as_it_goes():
    html = page_of("an old run")
    assert "made by an earlier version" in html
    assert "cannot be run again from its file alone" in section(html, "Run it again")


def test_how_to_run_it_again_is_code_that_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    records.run().save("run.npz")
    records.comparison().save("comparison.npz")
    for kind in ("one run", "a comparison"):
        page = section(page_of(kind), "Run it again")
        code = re.search(r"<code>(.*?)</code>", page, re.DOTALL)[1].replace("&quot;", '"')
        exec(compile(code, kind, "exec"), {})
    assert capsys.readouterr().out.count("identical: ") == 1 + len(records.comparison().runs)


def test_a_rollout_is_compared_with_its_limits():
    rollout = records.rollout()
    text = Page(page_of("a rollout")).text
    assert f"An episode cost {rollout.costs.mean():.4g}" in text
    assert "(limit 0.5)" in text
    assert "whether all this is true of it is yours to judge" in text


def test_a_rollout_without_an_episode_has_no_pictures(tmp_path):
    empty = op.write_report(tmp_path / "report.html", records.no_episode()).read_text("utf-8")
    assert "No episode was played." in empty
    assert "<svg" not in empty
    Page(empty)
