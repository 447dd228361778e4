"""Secrets are masked wherever they are said, ordinary text is not, and no text makes it slow."""

import json
import secrets
import subprocess
import time

import pytest

from harness.masking import LEAST_CHARS, MASK, learn, mask, mask_all, secrets_in
from harness.model.provider import choose
from tests.harness_support import ROOT

CHANCE = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc_DEF-123"
BLOCK = "-----BEGIN RSA PRIVATE KEY-----\n{0}\n{0}\n-----END RSA PRIVATE KEY-----".format(CHANCE + "aB" * 12)
# A text, and what of it must not be there any more.
SECRETS = {
    "openai": (f"the key is sk-proj-{CHANCE}.", CHANCE),
    "deepseek": ("use sk-0123456789abcdef0123456789abcdef", "0123456789abcdef"),
    "anthropic": (f"x-api-key: sk-ant-api03-{CHANCE}-x_yAA", CHANCE),
    "github": (f"git clone https://x:ghp_{CHANCE[:36]}@github.com/a/b", CHANCE[:36]),
    "github fine": (f"github_pat_11AAAAAAA0{CHANCE}", CHANCE),
    "gitlab": (f"PRIVATE-TOKEN: glpat-{CHANCE[:20]}", CHANCE[:20]),
    "slack": ("xoxb-123456789012-abcdefGHIJKL", "abcdefGHIJKL"),
    "amazon": ("aws_access_key_id = AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    "google": (f"?key=AIza{CHANCE[:35]}&x=1", CHANCE[:35]),
    "hugging face": (f"HF login hf_{CHANCE[:34]}", CHANCE[:34]),
    "token of three parts": (f"cookie: session={JWT}; a=1", "eyJzdWIi"),
    "header": ("Authorization: Bearer abc.def-123456", "abc.def-123456"),
    "header in JSON": ('{"Authorization": "Bearer 0a1b2c3d4e5f6a7b"}', "0a1b2c3d4e5f6a7b"),
    "header in a command": ("curl -H 'Authorization: Basic dXNlcjpwYXNzd29yZA==' host", "dXNlcjpw"),
    "block": (f"# key\n{BLOCK}\n", CHANCE),
    "block in JSON": (json.dumps({"content": BLOCK}), CHANCE),
    "block cut short": (BLOCK[: BLOCK.index("\n-----END")], CHANCE),
    "block with numbers": ("\n".join(f"{n}\t{line}" for n, line in enumerate(BLOCK.splitlines(), 1)), CHANCE),
    "environment": ("export DB_PASSWORD=correcthorsebattery", "correcthorse"),
    "environment key": ("OPENAI_API_KEY=abcdefgh1234", "abcdefgh1234"),
    "assignment": ("password: S3cr3t!x", "S3cr3t!x"),
    "assignment in quotes": ("client_secret = 'GhJ7-kk12'", "GhJ7-kk12"),
    "assignment in JSON": ('{"password": "hunter2x"}', "hunter2x"),
    "assignment in JSON in JSON": (json.dumps({"a": '{"api_key": "q1w2e3r4t5"}'}), "q1w2e3r4t5"),
    "token": ("token=9f8e7d6c5b4a3210", "9f8e7d6c5b4a3210"),
    "key of a cloud": ("AccountKey=abC1dEf2Gh3iJk==;Endpoint=x", "abC1dEf2"),
    "in Chinese": ("数据库密码：abc12345，别外传", "abc12345"),
    "address": ("postgresql+psycopg://lab:pa:ss@db.local/x", "pa:ss"),
    "option": ("tool --api-key 1a2b3c4d5e --x", "1a2b3c4d5e"),
    "option of a user": ("curl -u admin:s3cr3tpw http://host", "s3cr3tpw"),
}
ORDINARY = [
    "password: str", "def login(user: str, password: str | None = None) -> Token:", "token_count = 12",
    "max_tokens=100000", "api_key = os.environ['API_KEY_1']", "secret = get_secret2()", "password=password",
    "PASSWORD=${DB_PASSWORD}", "token: {{ viewer.form_token }}", 'Authorization: f"Bearer {token}"',
    "Authorization: Bearer $TOKEN", "token=token or settings.token", "Bearer authentication is what the server wants.",
    "The token is 12 characters long; the password: at least eight.", "sk-learn-like-names-in-a-list",
    "git show 9f8e7d6c5b4a3210", "cache_key = 'feed-row-12'", "sort_key=lambda x: x[1]", "tokenizer = o200k_base",
    "https://host:8080/a@b", "密码：至少八位", "OPENAI_API_KEY=your-key-here", "primary_key=True, secret=False",
    "eyJ is how it begins", "-----BEGIN RSA PRIVATE KEY----- is its first line", "date -u +%Y-%m-%dT%H:%M:%SZ",
]  # fmt: skip
# What a pattern would look at again and again.
HOSTILE = [
    "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n", "-----", "eyJ", "eyJaaaaaaaaa.", "eyJaaaaaaaa-",
    "sk-", "sk-a", "xoxb-", "SG.aaaaaaaaaaaaaaaaa.", "://", "://a:", "://a:a", "password=", "password", "password ",
    "token_", "Authorization: ", "authorization:bearer ", "--api-", "--api-key ", "--a-a-a-", "-u a", "a", "1", "-",
    "\n", " ", '"', '\\"', 'password="', "=", "a_key", "_key=", "secret:secret:", MASK, "token=a1", "api_key='a1 ",
    "密码", "密码：", "a.", "a=b.c_d", "token=a.b.c ",
]  # fmt: skip


@pytest.mark.parametrize(("text", "secret"), SECRETS.values(), ids=SECRETS)
def test_a_secret_is_masked_visibly_and_once(text: str, secret: str) -> None:
    masked = mask(text)
    assert secret in text and secret not in masked and MASK in masked
    assert mask(masked) == masked


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_and_code_stay_as_they_are(text: str) -> None:
    assert mask(text) == text


def test_what_stands_around_a_secret_stays() -> None:
    assert mask('{"password": "hunter2x", "user": "me"}') == '{"password": "[masked]", "user": "me"}'
    assert mask(f"a sk-{CHANCE}, b") == "a [masked], b"
    assert mask("https://me:geheim@host/x?y=1") == "https://[masked]@host/x?y=1"
    assert json.loads(mask(json.dumps({"content": BLOCK, "n": 1})))["n"] == 1


def test_this_repository_has_no_secret_but_those_of_its_tests() -> None:
    found = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if found.returncode:
        pytest.skip("Not a repository of git.")
    names = [name for name in found.stdout.split() if not name.startswith(("tests/", ".ci/")) and "vendor" not in name]
    texts = {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}
    read = {name: raw.decode() for name, raw in texts.items() if b"\0" not in raw and not name.endswith(".gz")}
    assert len(read) > 200
    assert [name for name, text in read.items() if mask(text) != text] == []


def test_sessions_of_real_agents_stay_as_they_are() -> None:
    files = [path for path in (ROOT.parent / "shared" / "transcripts").glob("**/*") if path.is_file()]
    if not files:
        pytest.skip("No recorded sessions are here.")
    for path in files:
        text = path.read_bytes().decode(errors="replace")
        assert mask(text) == text, path


def seconds(text: str) -> float:
    """Return how long it takes to mask a text, in seconds of this process."""
    begin = time.process_time()
    mask(text)
    return time.process_time() - begin


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_takes_longer_than_its_length_explains(piece: str) -> None:
    text = (piece * (120_000 // len(piece) + 1))[:120_000]
    # Eight times as long takes eight times as long; a pattern that looks again takes sixty.
    assert seconds(text) < 20 * max(seconds(text[:15_000]), 0.005)
    assert mask(mask(text)) == mask(text)


def test_a_megabyte_of_all_of_it_takes_no_longer_than_its_parts() -> None:
    parts = [(piece * (24_000 // len(piece) + 1))[:24_000] for piece in HOSTILE]
    text = "".join(parts)
    assert len(text) > 1_000_000
    assert seconds(text) < 4 * sum(map(seconds, parts))


def test_the_keys_of_this_server_are_masked_everywhere() -> None:
    key = f"plainwords{secrets.token_hex(2)}"
    environment = {
        "OPENAI_API_KEY": key,
        "LANG": "en_GB.UTF-8",
        "MODEL_TOKEN": "short",
        "PHOENIX_API_KEY": f"{key} more ",
    }
    assert mask(f"it is {key}.") == f"it is {key}."
    learn(secrets_in(environment))
    assert mask(f"it is {key} more, {key}!") == "it is [masked], [masked]!"
    assert mask("short en_GB.UTF-8") == "short en_GB.UTF-8" and len("short") < LEAST_CHARS
    assert choose(environment, model=None, base_url=None, gguf=None).api_key == key


def test_values_of_json_are_masked_by_their_names_too() -> None:
    value = {"password": "hunter2x", "list": [f"sk-{CHANCE}", 1, None, True], "token_count": 12, "text": 'say "hello"'}
    masked = mask_all(value)
    assert masked == {"password": MASK, "list": [MASK, 1, None, True], "token_count": 12, "text": 'say "hello"'}
    assert mask_all(masked) == masked
