// Addresses: every view has one, after `#`, so that names of documents reach no log and no proxy.
//
//     #/PROJECT/DATABASE/SCREEN/PATH…?PARAMETERS
//
// The parameter `at` is a moment: the screens Data and Query show the database as it was then.
import { signal } from "./signals.js";

export const screens = document.documentElement.dataset.mode === "production"
  ? ["data", "query", "why", "rules", "users", "files", "health", "server"] : ["data", "query", "why", "rules", "users", "files", "health"];

/** The moment that Data and Query show, as a time of the API, or "" for the present. */
export const moment = signal("");
const timedScreens = new Set(["data", "query"]);

function decoded(text) { try { return decodeURIComponent(text); } catch { return text; } }

/** Returns the place that an address names. */
export function parseAddress(hash, project) {
  const [path, query = ""] = hash.replace(/^#?\/?/, "").split("?");
  const parts = path.split("/").filter((part) => part !== "").map(decoded);
  const screen = screens.includes(parts[2]) ? parts[2] : "data";
  const parameters = {};
  for (const [name, value] of new URLSearchParams(query)) if (name !== "at") parameters[name] = value;
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
  if (moment.peek() && timedScreens.has(place.screen)) parameters.set("at", moment.peek());
  const query = parameters.toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

// The server prints the address of the console with a secret. Keep it out of the address bar, the history and screenshots.
const keyInAddress = /^#\/\?key=([0-9a-f]{32})$/.exec(location.hash);
if (keyInAddress) {
  sessionStorage.setItem("hearth.key", keyInAddress[1]);
  history.replaceState(null, "", location.pathname);
}
/** The secret of the server's start, with which the console writes files, or "". */
export const startKey = sessionStorage.getItem("hearth.key") ?? "";

const ownProject = document.documentElement.dataset.project || "demo";

/** The place that is shown. */
export const place = signal(parseAddress(location.hash, ownProject));

const momentOf = (hash) => new URLSearchParams(hash.split("?")[1] ?? "").get("at") ?? "";
moment.set(momentOf(location.hash));

/** Whether the screen shows the past. */
export const isPast = () => moment() !== "" && timedScreens.has(place().screen);

/** Shows the database as of a moment, or with "" as it is now. */
export function travel(time) {
  moment.set(time);
  go({ ...place.peek() }, { replace: true });
}

/** Asks whether the view may be left; a screen with unsaved text sets it. */
export const guard = { isDirty: () => false };
let shown = location.hash;

addEventListener("hashchange", () => {
  if (location.hash === shown) return;
  if (guard.isDirty() && !confirm("Discard the changes that are not saved?")) {
    history.pushState(null, "", shown || "#/");
    shown = location.hash;
    return;
  }
  guard.isDirty = () => false;
  const next = parseAddress(location.hash, ownProject);
  // A link that was made before stays in the moment that is shown.
  if (momentOf(location.hash)) moment.set(momentOf(location.hash));
  else if (moment.peek() && timedScreens.has(next.screen)) history.replaceState(null, "", formatAddress(next));
  shown = location.hash;
  place.set(next);
});
addEventListener("beforeunload", (event) => { if (guard.isDirty()) event.preventDefault(); });

/** Shows another place. `replace` leaves no entry in the history, and does nothing if the user has just gone elsewhere. */
export function go(change, { replace = false } = {}) {
  const next = { ...place.peek(), parameters: {}, ...change };
  const hash = formatAddress(next);
  if (hash === location.hash) return;
  if (replace) {
    // The event about the new address comes later. A screen that completes its own address meanwhile would undo the step.
    if (location.hash !== shown) return;
    history.replaceState(null, "", hash);
    shown = location.hash;
    place.set(next);
  } else location.hash = hash;
}

/** Returns the address of a document or a collection. */
export function addressOf(path, parameters = {}) {
  return formatAddress({ ...place.peek(), screen: "data", path: path.split("/"), parameters });
}
