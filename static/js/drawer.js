// The settings drawer: Escape closes it and gives the focus back, and so does going on to something that it covers.
export function watchDrawer() {
  const drawer = document.querySelector("#drawer");
  if (!drawer) return;
  const [button, sheet] = drawer.children;

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing || !drawer.open) return;
    if (drawer.contains(document.activeElement)) button.focus();
    drawer.open = false;
  });
  document.addEventListener("focusin", ({ target }) => {
    if (drawer.open && !drawer.contains(target) && covers(sheet, target)) drawer.open = false;
  });
  drawer.addEventListener("htmx:before:request", ({ target }) => {
    drawer.querySelector("#drawer-said").textContent = "";
    // A form with something that was not taken is left alone, but for the answer to its own next try.
    target.removeAttribute("hx-morph-skip");
  });
  drawer.addEventListener("htmx:after:swap", ({ target }) => {
    // What was answered is the form's own now, so that a later change from elsewhere is shown in it.
    target.reset();
    target.querySelector("[aria-invalid]")?.focus();
  });
}

function covers(sheet, target) {
  const over = sheet.getBoundingClientRect();
  const under = target.getBoundingClientRect();
  return under.right > over.left && under.left < over.right && under.bottom > over.top && under.top < over.bottom;
}
