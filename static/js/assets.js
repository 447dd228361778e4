// Loads htmx, then its extension: from the pinned address, or from this server when that takes too long or has
// other bytes. What had to come from this server is remembered for a day, so the next page does not wait.
const PATIENCE = 2000; // milliseconds, for all assets together
const REMEMBER = "context-lab-assets=local; path=/; max-age=86400; samesite=strict";

export async function loadAssets() {
  const meta = document.querySelector("meta[name=assets]");
  if (!meta) return false;
  const assets = JSON.parse(meta.content);
  // A script that hangs would hold up the page's load event, so another host is asked only after it.
  if (assets.some((asset) => asset.address)) await pageLoaded();
  const late = new Promise((resolve) => setTimeout(resolve, PATIENCE, false));
  let local = false;
  for (const asset of assets) {
    if (asset.address && !local) {
      if (await fetched(asset, late)) continue;
      local = true;
      document.cookie = REMEMBER;
    }
    if (!(await run(element(asset.file, asset.integrity)))) return false;
  }
  return true;
}

async function pageLoaded() {
  if (document.readyState !== "complete") await new Promise((resolve) => addEventListener("load", resolve));
}

async function fetched(asset, late) {
  const script = element(asset.address, asset.integrity);
  script.crossOrigin = "anonymous";
  if (await Promise.race([run(script), late])) return true;
  // A script that belongs to another document never runs, also when its bytes come later after all.
  document.implementation.createHTMLDocument().adoptNode(script);
  return false;
}

function element(address, integrity) {
  const script = document.createElement("script");
  const own = document.querySelector("script[nonce]");
  Object.assign(script, { src: address, integrity });
  // The pinned address is allowed by the policy as it stands; only our own files need the nonce.
  if (address.startsWith("/")) script.nonce = own.nonce;
  return script;
}

function run(script) {
  return new Promise((resolve) => {
    script.onload = () => resolve(true);
    script.onerror = () => resolve(false);
    document.head.append(script);
  });
}
