"""From a request to a viewer: language and looks by choice (cookie), as the server was started, by the browser."""

from starlette.requests import Request

from web.assets import LOCAL_COOKIE, describe
from web.site import Site, site_of
from web.viewer import TEXT_SIZES, THEMES, Script, Viewer
from web.words import LANGUAGES, Language

LANGUAGE_COOKIE, THEME_COOKIE, SIZE_COOKIE = "context-lab-language", "context-lab-theme", "context-lab-size"
MAIN = Script("/static/js/main.js", module=True)


def viewer_of(request: Request) -> Viewer:
    """Return who asks, for a page of their own."""
    site = site_of(request)
    local = site.settings.offline_assets or request.cookies.get(LOCAL_COOKIE) == "local"
    theme, size = request.cookies.get(THEME_COOKIE), request.cookies.get(SIZE_COOKIE)
    viewer = Viewer(
        pages=site.pages,
        language=language_of(request, site),
        theme=theme if theme in THEMES else site.settings.theme,
        text_size=size if size in TEXT_SIZES else site.settings.text_size,
        nonce=request.state.nonce,
        form_token=site.settings.form_token,
        scripts=(MAIN,),
        assets=describe(site.assets, local=local),
    )
    return viewer.asked(request.query_params)


def shared_viewer_of(request: Request) -> Viewer:
    """Return who asks, without what belongs to one page only: pages with equal viewers share what is rendered."""
    site = site_of(request)
    language = language_of(request, site)
    plain = Viewer(pages=site.pages, language=language, form_token=site.settings.form_token)
    return plain.asked(request.query_params)


def language_of(request: Request, site: Site) -> Language:
    """Return the language that the visitor chose, else the server's, else the browser's best, else English."""
    chosen = request.cookies.get(LANGUAGE_COOKIE)
    if chosen in LANGUAGES:
        return chosen
    return site.settings.language or preferred(request.headers.get("accept-language", "")) or "en"


def preferred(accepted: str) -> Language | None:
    """Return the language that an Accept-Language header wants most, of those there are.

    preferred("fr, zh-CN;q=0.8, en;q=0.5") -> "zh"
    """
    ranked: list[tuple[float, Language]] = []
    for part in accepted.split(",")[:20]:
        tag, _, rest = part.strip().partition(";")
        for language in LANGUAGES:
            if tag.lower().split("-")[0] == language:
                ranked.append((_quality(rest), language))
    best = max(ranked, key=lambda pair: pair[0], default=(0.0, None))
    return best[1] if best[0] > 0 else None


def _quality(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    if name.strip() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0
