// Connects the page to the server's events, and shows when the connection is lost.
// htmx resumes a broken stream by itself, but not one whose very first connection failed.
const AGAIN = 1000; // milliseconds

const CONNECT = "hx-sse:connect";

let connected = false;
let address = "";

export function connect() {
  const stream = document.querySelector("#stream");
  if (!stream) return;
  stream.setAttribute(CONNECT, address);
  window.htmx.process(stream);
}

export function watchConnection() {
  const stream = document.querySelector("#stream");
  if (!stream) return;
  // htmx starts as soon as it is loaded, and its extension comes after it: until then it must not see this.
  address = stream.getAttribute(CONNECT);
  stream.removeAttribute(CONNECT);
  stream.addEventListener("htmx:sse:after:connection", () => {
    connected = true;
    lost(false);
  });
  stream.addEventListener("htmx:sse:error", () => lost(true));
  for (const name of ["htmx:error", "htmx:response:error"]) stream.addEventListener(name, () => retry(stream));
}

function retry(stream) {
  if (connected) return;
  lost(true);
  setTimeout(() => connected || window.htmx.process(stream, true), AGAIN);
}

function lost(yes) {
  document.body.toggleAttribute("data-offline", yes);
  const place = document.querySelector("#offline");
  if (place) place.hidden = !yes;
}
