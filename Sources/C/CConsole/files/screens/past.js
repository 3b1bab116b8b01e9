// Time travel: the bar that chooses a moment, and what has changed since then.
import { h, icon, iconButton } from "../core/dom.js";
import { effect, onEnd, signal, untracked } from "../core/signals.js";
import { addressOf, go, moment, place, travel } from "../core/address.js";
import { call, commitAll, hearthURL, resourceName } from "../api/client.js";
import { changesSince, comparedMax } from "../api/feed.js";
import { needs } from "../api/session.js";
import { agoText, fieldOf, numberText, summary, timeText, visible } from "../api/values.js";
import { changedFields } from "../model/nodes.js";
import { inverse, remember, say } from "../model/undo.js";
import { button, confirmAction, errorBox } from "../parts/dialog.js";
import { virtualList } from "../parts/virtual-list.js";

/** Whether the bar is open although the present is shown. */
export const isTimeBarOpen = signal(false);

/** The time in a field of a form, in the local zone, to the second. */
const fieldText = (milliseconds) => timeText(new Date(milliseconds).toISOString()).slice(0, 19).replace(" ", "T");

/** The bar with a slider and a field for the moment. */
export function timeBar() {
  const oldest = signal(0);
  const now = signal(Date.now());
  const chosen = signal(moment.peek() ? Date.parse(moment.peek()) : now.peek());
  async function read() {
    try {
      const found = await call("GET", hearthURL("history"));
      now.set(Date.now());
      // The oldest moment advances while the page is open, so the slider leaves a second.
      oldest.set(Math.min(Date.parse(found.oldest) + 1000, now.peek()));
    } catch (error) { say(error.message, { isError: true }); }
  }
  read();
  effect(() => { const time = moment(); chosen.set(time ? Date.parse(time) : Date.now()); });
  const choose = (milliseconds) => {
    const bounded = Math.max(oldest.peek(), milliseconds);
    if (!Number.isFinite(bounded)) return;
    travel(bounded >= Date.now() - 500 ? "" : new Date(bounded).toISOString());
  };
  const isChanges = () => place().parameters.changes === "1";
  return h("section", { class: () => `time-bar ${moment() ? "past" : ""}`, "aria-label": "Time" },
    h("span", { class: "row" }, icon("clock"), h("strong", {}, () => moment() ? "The past" : "Now")),
    h("input", { class: "input mono", type: "datetime-local", step: "1", "aria-label": "Moment", value: () => fieldText(chosen()),
      onchange: (event) => choose(new Date(event.target.value).getTime()) }),
    h("input", { class: "slider grow", type: "range", "aria-label": "Moment in the history", min: () => oldest(), max: () => now(), step: "1000",
      "aria-valuetext": () => fieldText(chosen()).replace("T", " "), value: () => String(chosen()),
      oninput: (event) => chosen.set(Number(event.target.value)), onchange: (event) => choose(Number(event.target.value)) }),
    h("span", { class: "muted small clip", role: "status" }, () => oldest() === 0 ? "" : moment() ? agoText(new Date(chosen()).toISOString())
      : `history since ${fieldText(oldest()).slice(11)}, ${agoText(new Date(oldest()).toISOString())}`),
    () => moment() ? [
      h("button", { type: "button", class: "button", "aria-pressed": () => String(isChanges()), onclick: () => go({ screen: "data",
        path: place.peek().path, parameters: { ...place.peek().parameters, changes: isChanges() ? "" : "1" } }) }, "Changes since then"),
      button("Back to now", () => {
        const { changes, ...parameters } = place.peek().parameters;
        moment.set("");
        isTimeBarOpen.set(false);
        go({ path: place.peek().path, parameters }, { replace: true });
      }, { kind: "primary" })]
      : iconButton("close", "Close", () => isTimeBarOpen.set(false)));
}

const kindOf = (change) => !change.before ? "created" : !change.after ? "deleted" : "changed";
const tagClass = { created: "good", deleted: "bad", changed: "" };

/** The documents at and below a path that differ from the chosen moment, with what differs. */
export function changesSinceThen() {
  const found = signal(null);
  const count = signal(0);
  const version = signal(0);
  const open = signal(-1);
  let shown = [];
  let stop = new AbortController();
  onEnd(() => stop.abort());
  async function load() {
    stop.abort();
    stop = new AbortController();
    const mine = stop;
    found.set(null);
    open.set(-1);
    try {
      const result = await changesSince(moment.peek(), mine.signal);
      const below = place.peek().path.join("/");
      shown = result.changes.filter(({ path }) => below === "" || path === below || path.startsWith(`${below}/`));
      found.set(result);
      count.set(shown.length);
      version.update((number) => number + 1);
    } catch (error) { if (!mine.signal.aborted) found.set({ error }); }
  }
  effect(() => { moment(); place(); untracked(load); });
  effect(() => { open(); version.update((number) => number + 1); });

  async function restore(changes) {
    const many = changes.length > 1;
    if (many && !await confirmAction({ title: `Restore ${numberText(changes.length)} documents?`, action: `Restore ${numberText(changes.length)} documents`,
      body: h("p", {}, `They become as they were ${timeText(moment.peek())}. A document that changes meanwhile stops the restore. You can undo it.`) })) return;
    const inverses = [];
    try {
      await commitAll(changes.map(({ path, before, after }) => {
        const currentDocument = after ? { updateTime: after.updateTime } : { exists: false };
        return before ? { update: { name: resourceName(path), fields: before.fields ?? {} }, currentDocument } : { delete: after.name, currentDocument };
      }), { isPresent: true, onResults: (part, times, done) => {
        part.forEach((_, index) => {
          const { path, before, after } = changes[done - part.length + index];
          inverses.push(inverse(after, before ? { name: resourceName(path), updateTime: times[index] } : null));
        });
        if (many) say(`Restoring: ${numberText(done)} of ${numberText(changes.length)} documents`);
      } });
    } catch (error) { say(error.message, { isError: true }); }
    if (inverses.length > 0) remember(many ? `Restored ${numberText(inverses.length)} documents` : `Restored ${changes[0].path}`, inverses);
    load();
  }

  const list = () => {
    const made = virtualList({
      label: "Changed documents", count, rowHeight: 30, version,
      makeRow: () => {
        const row = h("div", { class: "line", role: "option" }, h("span", { class: "tag" }), h("span", { class: "id clip value" }),
          h("span", { class: "preview clip value" }));
        row.addEventListener("click", () => open.set(row.index));
        return row;
      },
      render: (element, index) => {
        const change = shown[index];
        if (!change) return;
        element.index = index;
        element.setAttribute("aria-selected", String(index === open.peek()));
        element.setAttribute("aria-posinset", index + 1);
        element.setAttribute("aria-setsize", shown.length);
        const [tag, id, preview] = element.children;
        tag.className = `tag ${tagClass[kindOf(change)]}`;
        tag.textContent = kindOf(change);
        id.textContent = visible(change.path);
        preview.textContent = visible(kindOf(change) === "changed" ? changedFields(change.before.fields ?? {}, change.after.fields ?? {}).join(", ") : "");
      },
    });
    made.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || shown.length === 0) return;
      event.preventDefault();
      open.set(Math.max(0, Math.min(shown.length - 1, open.peek() + step)));
      made.show(open.peek());
    });
    return made;
  };
  const numbers = () => ["created", "changed", "deleted"].map((kind) => [kind, shown.filter((change) => kindOf(change) === kind).length])
    .filter(([, number]) => number > 0).map(([kind, number]) => `${numberText(number)} ${kind}`).join(", ");

  return h("div", { class: "fill" }, () => {
    const result = found();
    if (!result) return h("div", { class: "busy" });
    if (result.error) return errorBox(result.error, load);
    if (shown.length === 0) return h("div", { class: "empty" }, h("h2", {}, "Nothing has changed here since then"),
      h("p", {}, "Every document at this place is as it was. Choose another moment, or a place above."));
    return [h("div", { class: "head" }, h("h2", {}, numbers()), h("span", { class: "muted small grow clip" }, `since ${timeText(moment.peek()).slice(0, 19)}`,
      result.isCut ? `, the first ${numberText(comparedMax)} documents` : ""),
    button(() => shown.length === 1 ? "Restore it" : `Restore all ${numberText(shown.length)}`, () => restore(shown), needs("editor"))),
    h("div", { class: "split" }, h("section", { "aria-label": "Documents" }, list()),
      h("section", { "aria-label": "Difference" }, () => difference(shown[open()])))];
  });

  function difference(change) {
    if (!change) return h("div", { class: "empty" }, h("h2", {}, "Choose a document"), h("p", {}, "You see each field as it was, and as it is now."));
    const [before, after] = [change.before?.fields ?? {}, change.after?.fields ?? {}];
    return h("div", { class: "scroll" }, h("div", { class: "pad stack" },
      h("div", { class: "row wrap" }, h("span", { class: `tag ${tagClass[kindOf(change)]}` }, kindOf(change)),
        h("a", { class: "mono value text-link", href: addressOf(change.path) }, visible(change.path)), h("span", { class: "grow" }),
        button(change.before ? "Restore" : "Delete it again", () => restore([change]), needs("editor"))),
      h("p", { class: "muted small" }, `${numberText(change.commits)} ${change.commits === 1 ? "commit" : "commits"}, the last ${agoText(change.time)}`)),
    h("table", { class: "difference" }, h("thead", {}, h("tr", {}, ["Field", "Then", "Now"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, changedFields(before, after).map((name) => h("tr", {}, h("th", { scope: "row", class: "mono value" }, visible(name)),
        h("td", { class: "mono value was" }, fieldOf(change.before, name) ? summary(before[name], 400) : h("span", { class: "muted" }, "missing")),
        h("td", { class: "mono value is" }, fieldOf(change.after, name) ? summary(after[name], 400) : h("span", { class: "muted" }, "missing")))))));
  }
}
