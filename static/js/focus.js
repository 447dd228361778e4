// Keeps the keyboard's place: when what has the focus is replaced or goes, the nearest thing around it that is still
// there takes the focus, so that Tab goes on from there. After an answer to an approval that is its row.
export function keepFocus() {
  const stream = document.querySelector("#stream");
  if (!stream) return;
  let around = [];
  stream.addEventListener("htmx:before:swap", () => {
    around = [];
    for (let each = document.activeElement; each && each !== document.body; each = each.parentElement) {
      if (each.id) around.push(each.id);
    }
  });
  stream.addEventListener("htmx:after:swap", () => {
    for (const id of around) {
      if (document.activeElement && document.activeElement !== document.body) return;
      take(document.getElementById(id));
    }
  });
}

function take(place) {
  if (!place) return;
  // A row can always take it; another part only for now, so that a click on it later is none of ours.
  const lent = place.tabIndex < 0 && !place.hasAttribute("tabindex");
  const giveBack = () => place.removeAttribute("tabindex");
  if (lent) place.tabIndex = -1;
  place.focus({ preventScroll: true });
  if (!lent) return;
  // What is in a fold that is closed does not take it.
  if (document.activeElement === place) place.addEventListener("blur", giveBack, { once: true });
  else giveBack();
}
