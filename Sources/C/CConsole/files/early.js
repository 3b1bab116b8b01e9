// Sends the first requests of the screen Data while the browser loads the other scripts. `early` keeps the responses by
// method and URL, as promises of texts, and api/client.js takes each of them once. A text is `null` after a failure. In a
// production server nobody is signed in yet, so it sends nothing.
const early = new Map();
/** Resolves when all early requests have ended. */
let earlyEnd = Promise.resolve();
{
  const [path, query = ""] = location.hash.replace(/^#?\/?/, "").split("?");
  const part = (text) => { try { return encodeURIComponent(decodeURIComponent(text)); } catch { return encodeURIComponent(text); } };
  const [project = part(document.documentElement.dataset.project), database = "(default)", screen = "data", ...rest] = path.split("/")
    .filter((each) => each !== "").map(part);
  const base = `/v1/projects/${project}/databases/${database}/documents`;
  const ask = (method, url, body) => {
    const made = fetch(url, { method, credentials: "omit", cache: "no-store", body,
      headers: { Authorization: "Bearer owner", ...(body ? { "Content-Type": "application/json" } : {}) },
    }).then((response) => response.ok ? response.text() : null).catch(() => null);
    early.set(`${method} ${url}`, made);
    return made;
  };
  const list = (segments) => ask("GET", `${base}/${segments.join("/")}?pageSize=100&showMissing=true`);
  const known = rest.slice(0, rest.length - (rest.length % 2 === 0 ? 1 : 0));
  if (document.documentElement.dataset.mode !== "production" && screen === "data" && !/(^|&)at=/.test(query)) {
    const above = known.slice(0, -1).map((segment) => `/${segment}`).join("");
    const roots = ask("POST", `${base}${above}:listCollectionIds`, '{"pageSize":1000}');
    earlyEnd = known.length > 0 ? Promise.all([roots, list(known)]) : innerWidth > 680 ? roots.then((text) => {
      const [first] = JSON.parse(text ?? "{}").collectionIds ?? [];
      return first ? list([encodeURIComponent(first)]) : null;
    }) : roots;
  }
  document.documentElement.dataset.theme = localStorage.getItem("hearth.theme") ?? "system";
}
