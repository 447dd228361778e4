// Keeps the feed at its end while the reader is there; elsewhere it leaves the page alone and offers a way down.
const NEAR = 80; // pixels from the end that count as being there

export function keepScroll() {
  const feed = () => document.querySelector("#feed");
  const pill = document.querySelector("#newer");
  const stream = document.querySelector("#stream");
  if (!feed() || !pill || !stream) return;
  let followed = true;
  let height = 0;

  stream.addEventListener("htmx:before:swap", () => {
    followed = atEnd(scroller(feed()));
    height = feed().scrollHeight;
  });
  stream.addEventListener("htmx:after:swap", () => {
    if (feed().scrollHeight <= height) return;
    if (followed) toEnd(scroller(feed()));
    else pill.hidden = false;
  });
  pill.addEventListener("click", () => toEnd(scroller(feed())));
  // Who sends a task wants to see it.
  document.addEventListener("submit", (event) => {
    if (event.target.action.endsWith("/tasks")) toEnd(scroller(feed()));
  });
  // `scroll` does not bubble, but it can be caught on its way down.
  document.addEventListener("scroll", () => (pill.hidden ||= atEnd(scroller(feed()))), { capture: true, passive: true });
}

function scroller(feed) {
  for (let each = feed; each && each !== document.body; each = each.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(each).overflowY) && each.scrollHeight > each.clientHeight) return each;
  }
  return document.scrollingElement;
}

function atEnd(box) {
  return box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
}

function toEnd(box) {
  box.scrollTo({ top: box.scrollHeight });
  const pill = document.querySelector("#newer");
  if (pill) pill.hidden = true;
}
