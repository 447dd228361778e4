// The page's state as the server last said it: on the body for the styles, and in the title, which is all that
// one sees of a tab in the background. A hidden tab lets go of its stream, so it asks now and then.
const EVERY = 5000; // milliseconds

export function watchState() {
  const title = document.title;
  let timer = 0;

  const show = (state) => {
    const mark = state === "waiting" ? document.body.dataset.titleWaiting ?? "" : "";
    document.title = mark ? `${mark} ${title}` : title;
  };
  const read = () => {
    const state = document.querySelector("#status")?.dataset.state;
    if (!state) return;
    document.body.dataset.state = state;
    show(state);
  };
  const ask = async () => {
    try {
      const answer = await fetch(`/s/${document.body.dataset.session}/state`);
      if (answer.ok) show((await answer.json()).state);
    } catch {
      // The server is not there; the stream says so when the tab is seen again.
    }
  };

  document.addEventListener("htmx:after:swap", read);
  document.addEventListener("visibilitychange", () => {
    clearInterval(timer);
    if (document.hidden && document.body.dataset.session) timer = setInterval(ask, EVERY);
  });
  read();
}
