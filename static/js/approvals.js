// Answers an approval by key: A allows, D denies, only while the focus is inside that approval's row. What a sub-agent
// does stays unfolded where a person has opened it, although its row is put anew meanwhile.
const ANSWERS = { a: "allow", d: "deny" };

export function watchApprovals() {
  document.addEventListener("keydown", (event) => {
    const answer = ANSWERS[event.key.toLowerCase()];
    const row = event.target.closest?.("[data-approval]");
    if (!answer || !row || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target.matches("input:not([type=hidden]), textarea, select")) return;
    row.querySelector(`button[value=${answer}]`)?.click();
  });
}

export function watchInside() {
  const opened = new Set();
  const name = (fold) => fold.querySelector(".feed").id;
  document.addEventListener("click", ({ target }) => {
    const fold = target.closest?.(".inside > summary")?.parentElement;
    // It is turned over after this.
    if (fold) fold.open ? opened.delete(name(fold)) : opened.add(name(fold));
  });
  document.addEventListener("htmx:after:swap", () => {
    for (const fold of document.querySelectorAll(".inside:not([open])")) fold.open = opened.has(name(fold));
  });
}
