// Keeps the last row of the feed in sight while the reader is there; elsewhere it leaves the page alone and
// offers a way down.
const NEAR = 80; // pixels below the edge that still count as being there

export function keepScroll() {
  const pill = document.querySelector("#newer");
  const stream = document.querySelector("#stream");
  if (!pill || !stream) return;
  let followed = true;
  let height = 0;
  let cuts = compactions().length;

  stream.addEventListener("htmx:before:swap", () => {
    followed = below(pill) < NEAR;
    height = bottom();
  });
  stream.addEventListener("htmx:after:swap", () => {
    if (bottom() <= height) return;
    const found = compactions();
    // A compaction is read from its top, not from its end.
    if (followed && found.length > cuts) found[found.length - 1].scrollIntoView({ behavior: "instant" });
    else if (followed) down(pill);
    else pill.hidden = false;
    cuts = found.length;
  });
  pill.addEventListener("click", () => down(pill));
  // Who sends a task wants to see it.
  const work = /\/(tasks|compact|summary)$/;
  document.addEventListener("submit", (event) => work.test(event.target.action) && down(pill));
  // `scroll` does not bubble, but it can be caught on its way down.
  const check = () => (pill.hidden ||= below(pill) < NEAR);
  document.addEventListener("scroll", check, { capture: true, passive: true });
}

const compactions = () => document.querySelectorAll('#feed [data-event="ContextCompacted"]');

export function scroller() {
  for (let each = document.querySelector("#feed"); each && each !== document.body; each = each.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(each).overflowY) && each.scrollHeight > each.clientHeight) return each;
  }
  return document.scrollingElement;
}

// Where the last row ends, in the whole of what scrolls.
function bottom() {
  return (document.querySelector("#feed").lastElementChild?.getBoundingClientRect().bottom ?? 0) + scroller().scrollTop;
}

// How far that is under the lower edge of what can be seen: of the window, or of the dock that lies over it.
function below(pill) {
  const box = scroller();
  const edge = box === document.scrollingElement ? innerHeight : box.getBoundingClientRect().bottom;
  return bottom() - box.scrollTop - Math.min(edge, pill.parentElement.getBoundingClientRect().top);
}

function down(pill) {
  // At once: while a smooth scroll is on its way, one cannot tell whether the reader is at the end.
  scroller().scrollBy({ top: Math.max(0, below(pill) + 8), behavior: "instant" });
  pill.hidden = true;
}
