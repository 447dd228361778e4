// Keeps the feed's end in sight while the reader is there; elsewhere it leaves the page alone and offers a way down.
import { scroller } from "./scroller.js";

const NEAR = 80; // pixels below the edge that still count as being there

export function keepScroll() {
  const pill = document.querySelector("#newer");
  const stream = document.querySelector("#stream");
  if (!pill || !stream) return;
  let followed = true;
  let [height, gap] = [0, 0];
  let cuts = compactions().length;
  let shown = NaN; // where a compaction was put at the top, until something comes after it

  stream.addEventListener("htmx:before:swap", () => {
    height = bottom();
    gap = below(pill);
    followed = gap < NEAR || Math.abs(scroller().scrollTop - shown) < NEAR;
  });
  stream.addEventListener("htmx:after:swap", () => {
    const found = compactions();
    const cut = found.length > cuts && found[found.length - 1];
    cuts = found.length;
    if (followed && cut) {
      // A compaction that ends the feed is read from its top; with the next row the end is followed again.
      cut.scrollIntoView({ behavior: "instant" });
      shown = scroller().scrollTop;
    } else if (followed && below(pill) > gap) {
      down(pill);
      shown = NaN;
    } else if (!followed && bottom() > height) pill.hidden = false;
  });
  pill.addEventListener("click", () => down(pill));
  // Who sends a task wants to see it.
  const work = /\/(tasks|compact|summary)$/;
  document.addEventListener("submit", (event) => work.test(event.target.action) && down(pill));
  // `scroll` does not bubble, but it can be caught on its way down.
  const check = () => (pill.hidden ||= below(pill) < NEAR);
  document.addEventListener("scroll", check, { capture: true, passive: true });
}

const compactions = () => document.querySelectorAll('#feed > [data-event="ContextCompacted"]');

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
