// Addresses: every view has one, after `#`, so that names of documents reach no log and no proxy.
//
//     #/PROJECT/DATABASE/SCREEN/PATH…?PARAMETERS
import { signal } from "./signals.js";

export const screens = ["data", "query", "why", "rules", "users", "files", "health"];

function decoded(text) { try { return decodeURIComponent(text); } catch { return text; } }

/** Returns the place that an address names. */
export function parseAddress(hash, project) {
  const [path, query = ""] = hash.replace(/^#?\/?/, "").split("?");
  const parts = path.split("/").filter((part) => part !== "").map(decoded);
  const screen = screens.includes(parts[2]) ? parts[2] : "data";
  const parameters = {};
  for (const [name, value] of new URLSearchParams(query)) parameters[name] = value;
  return {
    project: parts[0] ?? project, database: parts[1] ?? "(default)", screen, path: parts.slice(3), parameters,
  };
}

/** Returns the address of a place. Equal places have equal addresses. */
export function formatAddress(place) {
  const segment = (text) => encodeURIComponent(text).replaceAll("%28", "(").replaceAll("%29", ")");
  const path = [place.project, place.database, place.screen, ...place.path].map(segment).join("/");
  const parameters = new URLSearchParams();
  for (const name of Object.keys(place.parameters ?? {}).sort()) {
    const value = place.parameters[name];
    if (value !== undefined && value !== null && value !== "") parameters.set(name, value);
  }
  const query = parameters.toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

const ownProject = document.documentElement.dataset.project || "demo";

/** The place that is shown. */
export const place = signal(parseAddress(location.hash, ownProject));

/** Asks whether the view may be left; a screen with unsaved text sets it. */
export const guard = { isDirty: () => false };
let shown = location.hash;

addEventListener("hashchange", () => {
  if (location.hash === shown) return;
  if (guard.isDirty() && !confirm("Discard the changes that are not saved?")) {
    history.pushState(null, "", shown || "#/");
    return;
  }
  guard.isDirty = () => false;
  shown = location.hash;
  place.set(parseAddress(location.hash, ownProject));
});
addEventListener("beforeunload", (event) => { if (guard.isDirty()) event.preventDefault(); });

/** Shows another place. `replace` leaves no entry in the history. */
export function go(change, { replace = false } = {}) {
  const next = { ...place.peek(), parameters: {}, ...change };
  const hash = formatAddress(next);
  if (hash === location.hash) return;
  if (replace) {
    history.replaceState(null, "", hash);
    shown = hash;
    place.set(next);
  } else location.hash = hash;
}

/** Returns the address of a document or a collection. */
export function addressOf(path, parameters = {}) {
  return formatAddress({ ...place.peek(), screen: "data", path: path.split("/"), parameters });
}
