// The operator who is signed in to the console of a production server. An emulator needs no sign-in.
//
// The token is in memory and in the storage of the tab, which no other origin reads and which ends with the tab.
import { signal } from "../core/signals.js";

/** Whether the console belongs to a production server. */
export const isProduction = document.documentElement.dataset.mode === "production";

const sessionKey = "hearth.session";

function storedSession() {
  try { return JSON.parse(sessionStorage.getItem(sessionKey) ?? "null"); } catch { return null; }
}

/** The session: `{ token, name, role, project }`, or `null` if nobody is signed in. */
export const session = signal(isProduction ? storedSession() : null);
/** Why the last session ended, for the page that signs in. */
export const sessionNote = signal("");

const roleOrder = ["viewer", "editor", "owner"];

/** Whether the operator has at least this role. Everybody is the owner of an emulator. */
export function hasRole(role) {
  return !isProduction || roleOrder.indexOf(session()?.role ?? "") >= roleOrder.indexOf(role);
}

/** Why the operator cannot use what needs a role, or "". */
export function roleReason(role) {
  return hasRole(role) ? "" : `Your role is ${session.peek()?.role ?? "unknown"}. This needs the role ${role}.`;
}

/** The properties that disable a control if the operator does not have its role, with the reason in its title. */
export function needs(role) {
  const reason = roleReason(role);
  return reason ? { disabled: true, title: reason } : {};
}

/** Whether the console of a production server sends requests that change something. It is locked against accidents at first. */
export const isUnlocked = signal(!isProduction);
const unlockedMilliseconds = 15 * 60_000;
let lockTimer = 0;

/** Unlocks the console for 15 minutes, or locks it. */
export function setUnlocked(value) {
  clearTimeout(lockTimer);
  isUnlocked.set(value);
  if (value) lockTimer = setTimeout(() => isUnlocked.set(false), unlockedMilliseconds);
}

const readingCalls = /:(runQuery|runAggregationQuery|batchGet|listCollectionIds|listen|query|suggest|check|history)(\?|$)|^\/hearth\/v1\/(session|tokens)(\?|$)/;

/** Why a request is not sent, or "". The server decides by the role; this keeps an operator from changing data by mistake. */
export function lockReason(method, path) {
  if (!isProduction || ["GET", "HEAD"].includes(method) || readingCalls.test(path)) return "";
  if (!hasRole("editor")) return roleReason("editor");
  return isUnlocked.peek() ? "" : "The console is locked against accidents. Unlock it at the bottom of the page first.";
}

/** Begins or, with `null`, ends the session of this tab. */
export function setSession(next, note = "") {
  sessionNote.set(note);
  setUnlocked(!isProduction);
  if (next) sessionStorage.setItem(sessionKey, JSON.stringify(next));
  else sessionStorage.removeItem(sessionKey);
  session.set(next);
}

/** The token of administrators. */
export function ownToken() { return isProduction ? session.peek()?.token ?? "" : "owner"; }

/** Adds the project to the URL of a call that names none, because a server can have several. */
export function withProject(path) {
  if (!isProduction || !session.peek() || projectIn(path)) return path;
  return `${path}${path.includes("?") ? "&" : "?"}project=${encodeURIComponent(session.peek().project)}`;
}

/** The project that a URL names, or "". */
const projectIn = (path) => /^[^?]*\/projects\/([^/:?]+)/.exec(path)?.[1] ?? "";

/** Why a request is not sent to another project than that of the session, or "". Its server would end the session. */
export function foreignReason(path) {
  const [asked, own] = [decodeURIComponent(projectIn(path)), session.peek()?.project];
  return !isProduction || !own || asked === "" || asked === own ? "" : `You are signed in to the project ${own}. Sign out to open ${asked}.`;
}

let idleTimer = 0;
let lastSign = Date.now();
/** The time between two signs of life that an operator who types sends to the server. */
const signMilliseconds = 5 * 60_000;

/** Signs the operator out after some time without a key or a click. Requests of the page are no activity. */
function noteActivity() {
  clearTimeout(idleTimer);
  if (!session.peek()) return;
  // The server counts requests, and an operator who types sends none.
  if (Date.now() - lastSign > signMilliseconds) {
    lastSign = Date.now();
    fetch(withProject("/hearth/v1/session"), { headers: { Authorization: `Bearer ${session.peek().token}` }, credentials: "omit" }).catch(() => {});
  }
  idleTimer = setTimeout(() => signOut("You were signed out, because nobody used the page."), (session.peek().idleSeconds ?? 1800) * 1000);
}
if (session.peek()) noteActivity();
if (isProduction) for (const name of ["keydown", "pointerdown"]) addEventListener(name, noteActivity, { passive: true });

/** Signs the operator out, at the server too. */
export async function signOut(note = "You are signed out.") {
  const token = session.peek()?.token;
  const path = withProject("/hearth/v1/session");
  setSession(null, note);
  if (!token) return;
  try { await fetch(path, { method: "DELETE", headers: { Authorization: `Bearer ${token}` }, credentials: "omit" }); } catch { /* The session ends by itself. */ }
}

/** Signs an operator in. Throws an error with the reason. */
export async function signIn(name, password, project) {
  const query = project ? `?project=${encodeURIComponent(project)}` : "";
  let response;
  try {
    response = await fetch(`/hearth/v1/session${query}`, { method: "POST", credentials: "omit", cache: "no-store",
      headers: { "Content-Type": "application/json" }, body: JSON.stringify({ name, password }) });
  } catch { throw new Error("The server does not respond. Is it still running?"); }
  const found = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(found.error?.message ?? `Status ${response.status}`);
  setSession(found);
  noteActivity();
}
