// Steps with the keyboard: ← and → go call by call, Home to the first step, End to now. Only while the focus is on
// the stepper or nowhere (a row as a whole is nowhere), so that the keys keep their meaning everywhere else.
const KEYS = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "now" };
const MARK = "context-lab-step";

export function watchSteps() {
  const stepper = () => document.querySelector("#stepper");
  if (!stepper()) return;
  document.addEventListener("keydown", (event) => {
    const step = KEYS[event.key];
    const free = event.target.matches("body, #feed > .row") || stepper().contains(event.target);
    if (!step || !free || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const link = stepper().querySelector(`[data-step=${step}]`);
    if (!link) return;
    event.preventDefault();
    link.click();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("[data-step]");
    if (link) sessionStorage.setItem(MARK, link.dataset.step);
  });
  // The next page goes on where this one was left: the same button, or the other one at an end.
  const last = sessionStorage.getItem(MARK);
  sessionStorage.removeItem(MARK);
  if (!last) return;
  const link = stepper().querySelector(`[data-step=${last}]`) ?? stepper().querySelector("[data-step]");
  link?.focus({ preventScroll: true });
}
