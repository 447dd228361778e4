"""What the offline model makes of notes: which one it reads, what it was told, and that it knows no more than that."""

import json
from typing import Any

import pytest

from offline_model.chat import Reply
from offline_model.checks import parse
from offline_model.respond import respond
from offline_model.script import load_flows
from tests.offline_support import SCRIPTS, TOOLS, called, said, user

NAMES = ("remember", "recall", "forget")
WITH_NOTES = [*TOOLS, *({"type": "function", "function": {"name": name, "parameters": {}}} for name in NAMES)]
LIST = "<notes>\n- [Harbour keys](keys.md): The keys hang…\n- [Release day](day.md): New versions…\n</notes>"
FLOWS = load_flows(SCRIPTS)


def reply(*messages: dict[str, Any], system: str = LIST, tools: list[dict[str, Any]] = WITH_NOTES) -> Reply:
    body = {"model": "offline", "messages": [{"role": "system", "content": system}, *messages], "tools": tools}
    return respond(parse(json.dumps(body).encode()), FLOWS)


def asked_for(made: Reply) -> tuple[str, dict[str, str]]:
    [call] = made.calls
    return call.name, json.loads(call.arguments)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("When is the release day?", "day"),
        ("Who has the harbour keys?", "keys"),
        ("Is it late? Where are the keys?", "keys"),
    ],
)
def test_the_note_whose_line_fits_best_is_read(question: str, name: str) -> None:
    assert asked_for(reply(user(question))) == ("recall", {"name": name})


def test_no_note_is_read_where_none_fits_or_another_text_only_looks_like_a_list() -> None:
    text = reply(user("How deep is the water?")).text
    assert "does not contain the answer" in text and "No note in the list fits it either." in text
    listed = "- [How deep the water is](deep.md): The water…"
    assert not reply(*[user("Hello."), said(listed), user("How deep is the water?")]).calls
    assert not reply(*called_before(listed), user("How deep is the water?")).calls, "a file is no list of the client's"
    summary = f"[Background: a summary.]\n\n## Goal\n- none\n\n[Notes kept:]\n{listed}"
    assert asked_for(reply(user(summary), user("How deep is the water?"))) == ("recall", {"name": "deep"})
    assert "I am the offline model" in reply(user("How deep is the water?"), tools=TOOLS).text, "as without notes"


def called_before(text: str) -> list[dict[str, Any]]:
    return [user("Read notes.md."), *called("read", {"path": "notes.md"}, text), said("Read.")]


def test_what_a_note_says_is_known_once_it_was_read_and_its_line_says_nothing() -> None:
    question = user("When is the release day?")
    read = called(
        "recall", {"name": "day"}, "# Release day\n\nThe release day is Thursday; it was not allowed on Friday.\n"
    )
    text = reply(question, *read).text
    assert "The release day is Thursday" in text and "what `recall day` returned" in text
    failed = called("recall", {"name": "day"}, "There is no note `day` now. There are none at all.")
    assert "There is no note `day` now." in reply(question, *failed).text
    for title in ("Error codes", "What was not allowed"):
        titled = called("recall", {"name": "day"}, f"# {title}\n\nThe release day is Monday.\n")
        text = reply(question, *titled).text
        assert text.startswith("This is what the context says:") and "Monday" in text, "a title is no failure"


def test_what_the_user_told_is_known_until_it_leaves_the_context() -> None:
    told = user("Please remember that the ferry leaves at six. By the way, the dock is closed. Is the bell broken?")
    kept = called("remember", {"title": "the ferry", "text": "x"}, "Kept as `the-ferry`: [the ferry](the-ferry.md): x")
    text = reply(
        told, *kept, said("Done."), user("When does the ferry leave? Is the dock open? Who broke the bell?")
    ).text
    ferry, dock, bell = text.split("\n\n**")
    assert "- the ferry leaves at six." in ferry and "your own message" in ferry and "Kept as" not in text
    assert "- the dock is closed." in dock and "does not contain the answer" in bell, "a question tells nothing"
    assert "closed" not in reply(user("Is the dock open?")).text


@pytest.mark.parametrize(
    ("task", "title", "text"),
    [
        ("Remember that the cat is called Tom.", "the cat is called Tom", "the cat is called Tom."),
        ("Remember that the key hangs on the door.", "the key hangs on the door", "the key hangs on the door."),
        ("Remember that the kitchen key hangs on the old hook.", "the kitchen key hangs", None),
        ("Please remember that it costs 4.50 a day. Thanks!", "it costs", "it costs 4.50 a day."),
        ("请记住：备用钥匙放在三号柜。谢谢。", "备用钥匙", "备用钥匙放在三号柜。"),
    ],
)
def test_what_follows_remember_is_kept_in_its_own_words(task: str, title: str, text: str | None) -> None:
    text = text or task.removeprefix("Remember that ")
    assert asked_for(reply(user(task))) == ("remember", {"title": title, "text": text})
    assert not reply(user("Do you remember that the cat is called Tom?")).calls


def test_a_note_is_forgotten_by_its_line_or_else_the_one_kept_last() -> None:
    assert asked_for(reply(user("Forget the note about the harbour keys."))) == ("forget", {"name": "keys"})
    kept = called("remember", {"title": "t", "text": "x"}, "Kept as `ferry-time`: [t](ferry-time.md): x")
    forget = user("Forget the note about the ferry.")
    assert asked_for(reply(user("-"), *kept, said("Done."), forget)) == ("forget", {"name": "ferry-time"})
    assert reply(forget).text.startswith("There is nothing to forget") and not reply(forget).calls
    assert reply(user("忘掉关于渡船的笔记。")).text.startswith("没有可忘的")


@pytest.mark.parametrize(
    ("task", "tool", "result", "says"),
    [
        ("Remember that the bell is red.", "remember", "Kept as `bell`: [b](bell.md)", "The note is kept"),
        ("请记住：钟放在门口。", "remember", "Kept as `钟`: [钟](钟.md)", "笔记已记下"),
        ("请记住：钟放在门口。", "remember", "A note that says this is there already: `钟`.", "一模一样的笔记"),
        ("Forget the note about the harbour keys.", "forget", "Forgotten: `keys`. Now…", "The note is removed"),
        ("忘掉关于 keys 的笔记。", "forget", "Forgotten: `keys`. Now…", "笔记已永久删除"),
        ("When is the release day?", "recall", "There is no note `day` now.", "The list of this session names a note"),
        ("release day 是哪天？", "recall", "There is no note `day` now.", "这个会话的清单里有一条对得上的笔记"),
    ],
)
def test_what_was_done_to_a_note_is_said_in_the_language_of_the_task(
    task: str, tool: str, result: str, says: str
) -> None:
    text = reply(user(task), *called(tool, {"name": "day"}, result)).text
    assert text.startswith(says) and result in text, "the tool's own words stand below"


def test_only_a_file_that_was_read_can_be_read_again() -> None:
    again, question = "Reading the file again would help", user("How deep is the water?")
    assert again not in reply(question).text
    assert again in reply(*called_before("- The bell is red."), question).text
    told = [user("For your information: the bell is red."), said("Good.")]
    assert again not in reply(*told, user("Is the bell at 10:11?"), tools=TOOLS).text
