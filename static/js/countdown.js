// Shows the time left until a moment that the server named, in seconds since 1970: <span data-countdown="…">.
export function watchCountdowns() {
  const tick = () => {
    for (const place of document.querySelectorAll("[data-countdown]")) {
      const left = Math.max(0, Math.round(Number(place.dataset.countdown) - Date.now() / 1000));
      place.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    }
  };
  setInterval(tick, 1000);
  document.addEventListener("htmx:after:swap", tick);
  tick();
}
