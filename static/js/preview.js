// Keeps the preview of a compaction by hand true: it is asked for again when it is opened, and when the context has
// changed while it is open.
export function watchPreview() {
  const meter = () => {
    const shown = document.querySelector("#meter");
    return `${shown?.dataset.cut} ${shown?.textContent}`;
  };
  const refresh = () => {
    const chosen = document.querySelector("#by-hand[open] [data-preview]:is(:checked, [type=hidden])");
    if (chosen) window.htmx?.trigger(chosen, "refresh");
  };
  let known = meter();
  // `toggle` does not bubble, but it can be caught on its way down.
  document.addEventListener("toggle", (event) => event.target.id === "by-hand" && refresh(), { capture: true });
  document.addEventListener("htmx:after:swap", () => {
    if (meter() === known) return;
    known = meter();
    refresh();
  });
}
