// What scrolls the feed: its column where that has a scroll bar of its own, else the whole page.
export function scroller() {
  for (let each = document.querySelector("#feed"); each && each !== document.body; each = each.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(each).overflowY) && each.scrollHeight > each.clientHeight) return each;
  }
  return document.scrollingElement;
}
