// Live changes: one stream of the commits of the database, while the tab is visible and live mode is on.
import { effect, onEnd, signal } from "../core/signals.js";
import { moment, place } from "../core/address.js";
import { documentsURL, pathOf, readLines } from "./client.js";
import { isEqual } from "./values.js";

/** Whether changes are followed. */
export const isLive = signal(true);
/** `"live"`, `"paused"` or `"lost"`. */
export const liveState = signal("paused");
/** The commits that were seen since the page was opened. */
export const seenCommits = signal(0);

const isVisible = signal(!document.hidden);
let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (!document.hidden) isVisible.set(true);
  // A hidden tab gives its connection back: a browser has six for all tabs.
  else hiding = setTimeout(() => isVisible.set(false), 10_000);
});

const followers = new Set();

/** Calls `handle` with the changes of commits, `{ path, before, after }`, until the current owner ends. */
export function follow(handle) {
  followers.add(handle);
  onEnd(() => followers.delete(handle));
}

function receive(event) {
  if (!event.changes) return;
  seenCommits.update((count) => count + 1);
  // What happens now does not change the past.
  if (moment.peek()) return;
  const changes = event.changes.map(({ name, before, after }) => ({ path: pathOf(name), before, after }));
  for (const handle of followers) handle(changes);
}

/** The documents that a comparison with the past contains at most. */
export const comparedMax = 20_000;

/**
 * Compares the database at a time with now: `{ changes: [{ path, before, after, time, commits }], isCut }`, in the order
 * of paths. Documents that are equal again are left out.
 */
export async function changesSince(time, stop) {
  const found = new Map();
  const end = new AbortController();
  stop.addEventListener("abort", () => end.abort());
  let isCut = false;
  try {
    await readLines(`${documentsURL("", ":changes")}?readTime=${encodeURIComponent(time)}`, end.signal, (event) => {
      if (end.signal.aborted) return;
      if (!event.changes) { end.abort(); return; }
      for (const { name, before, after } of event.changes) {
        const path = pathOf(name);
        const known = found.get(path);
        if (known) Object.assign(known, { after: after ?? null, time: event.commitTime, commits: known.commits + 1 });
        else if (found.size === comparedMax) isCut = true;
        else found.set(path, { path, before: before ?? null, after: after ?? null, time: event.commitTime, commits: 1 });
      }
    });
  } catch (error) { if (!end.signal.aborted || stop.aborted) throw error; }
  return { isCut, changes: [...found.values()].filter(({ before, after }) =>
    !before !== !after || (before && !isEqual(before.fields ?? {}, after.fields ?? {}))).sort((a, b) => a.path < b.path ? -1 : 1) };
}

/** Follows the database that is shown. */
export function startFeed() {
  const database = signal("");
  effect(() => { const { project, database: id } = place(); database.set(`${project}/${id}`); });
  effect(() => {
    database();
    if (!isLive() || !isVisible()) { liveState.set("paused"); return; }
    const stop = new AbortController();
    onEnd(() => stop.abort());
    let token = "";
    let wait = 1000;
    const run = async () => {
      while (!stop.signal.aborted) {
        try {
          const url = documentsURL("", ":changes") + (token ? `?since=${encodeURIComponent(token)}` : "");
          await readLines(url, stop.signal, (event) => {
            wait = 1000;
            liveState.set("live");
            if (event.resumeToken) token = event.resumeToken;
            receive(event);
          });
        } catch (error) {
          if (stop.signal.aborted) return;
          if (error.status >= 400 && error.status < 500) token = "";
        }
        if (stop.signal.aborted) return;
        liveState.set("lost");
        await new Promise((done) => setTimeout(done, wait));
        wait = Math.min(wait * 2, 30_000);
      }
    };
    run();
  });
}
