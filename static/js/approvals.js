// Answers an approval by key: A allows, D denies, only while the focus is inside that approval's row.
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
