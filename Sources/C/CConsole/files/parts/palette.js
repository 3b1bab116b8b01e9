// The palette: jump to a document, a collection, a person, a screen or a command.
import { h } from "../core/dom.js";
import { effect, signal } from "../core/signals.js";
import { go, screens } from "../core/address.js";
import { allCommands, keysText } from "../core/keys.js";
import { listCollections, listDocuments, lastSegment, parentOf, pathOf } from "../api/client.js";
import { visible } from "../api/values.js";
import { showDialog, button } from "./dialog.js";

const screenNames = {
  data: "Data", query: "Query", why: "Why", rules: "Rules", users: "Users", files: "Files", health: "Health", server: "Server",
};

/** Returns the path in a pasted text: a resource name, a URL of a console, or a path. */
export function pastedPath(text) {
  const trimmed = text.trim().replace(/^\/+|\/+$/g, "");
  const resource = /projects\/[^/]+\/databases\/[^/]+\/documents\/(.+)$/.exec(trimmed);
  if (resource) return resource[1];
  const url = /\/firestore\/(?:databases\/[^/]+\/)?data\/(.+)$/.exec(trimmed);
  if (url) return decodeURIComponent(url[1].replaceAll("~2F", "/")).replace(/^\/+/, "");
  return trimmed;
}

/** Opens the palette. */
export function openPalette() {
  const text = signal("");
  const found = signal([]);
  const chosen = signal(0);
  let asked = 0;

  const matches = (label) => text.peek().toLowerCase().split(/\s+/).every((word) => label.toLowerCase().includes(word));
  async function search() {
    asked += 1;
    const mine = asked;
    const typed = text.peek();
    const path = pastedPath(typed);
    const own = [];
    for (const [index, name] of screens.entries()) {
      if (matches(screenNames[name])) own.push({ label: screenNames[name], kind: "Screen", rank: index, run: () => go({ screen: name, path: [] }) });
    }
    for (const command of allCommands()) {
      if (command.label && matches(command.label) && command.label !== "Jump") {
        own.push({ label: command.label, kind: "Command", keys: command.keys, run: command.run });
      }
    }
    const places = [];
    if (path.includes("/")) places.push({ label: path, kind: path.split("/").length % 2 === 0 ? "Document" : "Collection",
      run: () => go({ screen: "data", path: path.split("/") }) });
    found.set([...places, ...own].slice(0, 40));
    chosen.set(0);
    try {
      // Completion: the collections or documents below what was typed so far.
      const parent = parentOf(path);
      const start = lastSegment(path);
      const isCollection = path.split("/").length % 2 === 1;
      const names = isCollection ? (await listCollections(parent)).map((id) => parent ? `${parent}/${id}` : id)
        : ((await listDocuments(parent, { pageSize: 300, mask: ["__name__"] })).documents ?? []).map(({ name }) => pathOf(name));
      if (mine !== asked) return;
      const more = names.filter((name) => lastSegment(name).toLowerCase().startsWith(start.toLowerCase())).slice(0, 12)
        .map((name) => ({ label: name, kind: name.split("/").length % 2 === 0 ? "Document" : "Collection",
          run: () => go({ screen: "data", path: name.split("/") }) }));
      const known = new Set(more.map((entry) => entry.label));
      found.set([...more, ...places.filter((entry) => !known.has(entry.label)), ...own].slice(0, 40));
    } catch { /* The typed text is not a place. */ }
  }
  search();

  const dialog = h("dialog", { class: "palette", "aria-label": "Jump" });
  const close = () => { dialog.close(); dialog.remove(); };
  const run = (entry) => { close(); entry?.run(); };
  const list = h("ul", { role: "listbox", id: "palette-list", "aria-label": "Matches" }, () => found().map((entry, index) => h("li", {
    role: "option", id: `palette-${index}`, "aria-selected": () => String(index === chosen()), onclick: () => run(entry),
  }, h("span", { class: "tag" }, entry.kind), h("span", { class: "clip grow value" }, visible(entry.label)),
  entry.keys ? h("kbd", {}, keysText(entry.keys)) : null)));
  dialog.append(h("input", {
    type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-label": "Jump to a path or a command",
    "aria-activedescendant": () => `palette-${chosen()}`, placeholder: "Jump to a path, a screen or a command", autocomplete: "off",
    spellcheck: "false",
    oninput: (event) => { text.set(event.target.value); search(); },
    onkeydown: (event) => {
      const count = found.peek().length;
      if (event.key === "ArrowDown") chosen.set((chosen.peek() + 1) % Math.max(1, count));
      else if (event.key === "ArrowUp") chosen.set((chosen.peek() - 1 + count) % Math.max(1, count));
      else if (event.key === "Enter") run(found.peek()[chosen.peek()]);
      else if (event.key === "Tab" && found.peek()[chosen.peek()]) {
        event.target.value = `${found.peek()[chosen.peek()].label}/`;
        text.set(event.target.value);
        search();
      } else return;
      event.preventDefault();
      document.getElementById(`palette-${chosen.peek()}`)?.scrollIntoView({ block: "nearest" });
    },
  }), list);
  effect(() => { chosen(); });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) close(); });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** Shows all keys. */
export function openKeys() {
  const groups = new Map();
  for (const entry of allCommands().filter((each) => each.keys && each.label)) {
    const group = entry.group ?? "Everywhere";
    if (!groups.has(group)) groups.set(group, []);
    if (!groups.get(group).some((each) => each.keys === entry.keys)) groups.get(group).push(entry);
  }
  showDialog("Keys", () => [...groups].map(([group, entries]) => h("section", { class: "stack", style: { gap: "6px" } },
    h("h3", {}, group), h("dl", { class: "facts" }, entries.map((entry) =>
      [h("dt", {}, h("kbd", {}, keysText(entry.keys))), h("dd", {}, entry.label)])))),
  (close) => [button("Close", () => close(), { kind: "primary" })]);
}

