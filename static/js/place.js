// Brings a reader back to the same place in the feed after a reload or a change of view. Who comes for the first
// time starts at its end, where the feed has a scroll bar of its own and a task was given; else at the page's top.
import { scroller } from "./scroller.js";

const KEY = `place ${location.pathname}`;

export function keepPlace() {
  const box = scroller();
  const kept = sessionStorage.getItem(KEY);
  const here = document.querySelector("[data-moment] #feed > .row:last-child");
  if (here && !location.hash) {
    // A moment is read at its end.
    here.scrollIntoView({ block: "nearest", behavior: "instant" });
    return;
  }
  // A tab of the panel has an anchor of its own; where the feed has its own scroll bar, that moves nothing there.
  const free = !location.hash || (location.hash === "#panel" && box !== document.scrollingElement);
  if (free) {
    if (kept !== null) box.scrollTop = Number(kept);
    else if (box !== document.scrollingElement && document.querySelector("[data-event=TaskStarted]")) box.scrollTop = box.scrollHeight;
  }
  addEventListener("pagehide", () => sessionStorage.setItem(KEY, scroller().scrollTop));
}
