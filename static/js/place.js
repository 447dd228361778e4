// Brings a reader back to the same place in the feed after a reload or a change of view. Who comes for the first
// time starts at its end, where the feed has a scroll bar of its own; on a small screen at the page's top.
import { scroller } from "./scroll.js";

const KEY = `place ${location.pathname}`;

export function keepPlace() {
  const box = scroller();
  const kept = sessionStorage.getItem(KEY);
  if (!location.hash) {
    if (kept !== null) box.scrollTop = Number(kept);
    else if (box !== document.scrollingElement) box.scrollTop = box.scrollHeight;
  }
  addEventListener("pagehide", () => sessionStorage.setItem(KEY, scroller().scrollTop));
}
