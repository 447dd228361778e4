"""Text that nobody vouches for becomes safe HTML; a lab's text keeps its answer folded."""

from pathlib import Path

import pytest

from tests.web_html import elements
from web.lab_text import Section, read_lab_text
from web.markdown import render_markdown
from web.words import language_of

LABS = Path(__file__).parent.parent / "labs"


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>",
        "<script>alert(1)</script>",
        "<div hx-get='/x'>a</div>",
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](data:text/html,x)",
        "[a](//host.invalid)",
        "[a](vbscript:x)",
        "![p](http://host.invalid/i.png)",
        "![p](data:image/png;base64,AAAA)",
        '```js" onclick="x\ncode\n```',
        "|a|\n|-:|\n|<b>|",
        "<http://host.invalid/?q='\"><script>>",
        "[a]: javascript:x\n\n[a]",
    ],
)
def test_nothing_that_acts_comes_through(text: str) -> None:
    found = elements(render_markdown(text))
    assert {x.tag for x in found} <= {"p", "a", "code", "pre", "table", "thead", "tbody", "tr", "th", "td"}
    assert {name for x in found for name in x.attributes} <= {"href", "rel", "target", "class"}
    assert all(x.attributes["href"].startswith("http") for x in found if x.tag == "a")


def test_links_are_kept_and_let_nothing_know_where_they_stood() -> None:
    [link] = [x for x in elements(render_markdown("[a](https://host.invalid) x")) if x.tag == "a"]
    assert link.attributes == {"href": "https://host.invalid", "rel": "noopener noreferrer", "target": "_blank"}
    assert "mailto:" in render_markdown("[a](mailto:a@host.invalid)")
    assert "<a" not in render_markdown("https://host.invalid"), "a bare address is not made a link"


def test_a_picture_is_named_and_not_loaded() -> None:
    assert render_markdown("![a plan](https://host.invalid/i.png)") == (
        "<p><code>a plan · https://host.invalid/i.png</code></p>\n"
    )


def test_a_picture_of_ours_is_shown_in_a_lab_s_text_only() -> None:
    ours = "![a plan](../../static/pictures/lab-06.webp)"
    [link, picture] = [x for x in elements(render_markdown(ours, pictures=True)) if x.tag in ("a", "img")]
    assert picture.attributes["src"] == link.attributes["href"] == "/static/pictures/lab-06.webp"
    assert picture.attributes["alt"] == "a plan"
    for other in ("https://host.invalid/i.png", "../../static/pictures/../x.png", "../../static/x.png", "//h/x.png"):
        assert "<img" not in render_markdown(f"![a plan]({other})", pictures=True)
    assert "<img" not in render_markdown(ours)


def test_headings_start_where_the_page_wants_them() -> None:
    assert [x.tag for x in elements(render_markdown("## A\n### B\n## C", top=5))] == ["h5", "h6", "h5"]
    assert [x.tag for x in elements(render_markdown("# A\n#### B"))] == ["h3", "h6"]


def test_the_answer_is_taken_out_of_the_last_section() -> None:
    text = "# Lab\n\nIntro\n\n## One\n\n```\n## no heading\n```\n\n## Think\n\nWhy?\n\n### One answer\n\nBecause.\n"
    read = read_lab_text(text)
    assert [part.title for part in read.sections] == ["", "One", "Think"]
    assert read.sections[-1] == Section("Think", "Why?") and read.answer == Section("One answer", "Because.")


def test_an_answer_in_details_and_texts_without_one() -> None:
    read = read_lab_text("## Think\nWhy?\n<details><summary>An answer</summary>\n\nSo.\n</details>")
    assert read.answer == Section("An answer", "So.") and read.sections[-1].body == "Why?"
    assert read_lab_text("").sections == () and read_lab_text("## A\nb").answer is None


@pytest.mark.parametrize("path", sorted(LABS.glob("*/README*.md")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_lab_ends_in_a_question_with_an_answer(path: Path) -> None:
    read = read_lab_text(path.read_text("utf-8"))
    assert read.answer and read.answer.title and read.answer.body and read.sections[-1].body


@pytest.mark.parametrize(
    ("text", "tag"),
    [("read the log", "en"), ("读日志", "zh-CN"), ("改 a.py 的 test", "zh-CN"), ("", "en"), ("1 2", "en")],
)
def test_the_language_of_a_text_is_told_by_its_script(text: str, tag: str) -> None:
    assert language_of(text) == tag
