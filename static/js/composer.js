// The box for a task: Enter sends, Shift+Enter is a new line, and it is emptied only when the server has taken the text.
export function watchComposer() {
  const form = document.querySelector("#composer");
  if (!form) return;
  form.addEventListener("keydown", (event) => {
    // While an input method composes, Enter belongs to it; on a phone there is no other way to a new line.
    if (event.key !== "Enter" || event.isComposing || event.shiftKey) return;
    if (matchMedia("(pointer: coarse)").matches && !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  });
  form.addEventListener("htmx:after:request", (event) => {
    if (event.detail.ctx.response.status < 300) form.reset();
  });
}
