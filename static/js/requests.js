// How htmx is set up, and what every request of it carries.
const CONFIG = {
  extensions: "sse", // no other extension may register
  history: false,
  includeIndicatorCSS: false,
  implicitInheritance: false,
  sse: { reconnectDelay: 500, reconnectMaxDelay: 5000 },
};

export function configure() {
  const meta = document.createElement("meta");
  meta.name = "htmx-config";
  meta.content = JSON.stringify(CONFIG);
  document.head.append(meta); // htmx reads it when it starts
  document.addEventListener("htmx:config:request", (event) => {
    // No foreign page can send this header, so the server knows that a change comes from ours.
    event.detail.ctx.request.headers["X-Context-Lab"] = "1";
  });
  document.addEventListener("htmx:after:request", (event) => {
    const { request, response } = event.detail.ctx;
    if (request.method === "POST" && response.status < 400) notice("");
  });
  document.addEventListener("htmx:error", (event) => {
    const request = event.detail.ctx?.request;
    if (request?.method === "POST") notice(document.querySelector("#offline")?.textContent ?? "");
  });
}

function notice(text) {
  const place = document.querySelector("#notice");
  if (place) place.textContent = text;
}
