// One document: its fields with types, its JSON, and the collections below it.
import { h, icon, iconButton } from "../core/dom.js";
import { effect, onEnd, signal, untracked } from "../core/signals.js";
import { addressOf, guard, isPast, moment, place } from "../core/address.js";
import { command } from "../core/keys.js";
import { call, databaseName, documentsURL, getDocument, lastSegment, listCollections } from "../api/client.js";
import { resourceName, viewer } from "../api/client.js";
import { follow } from "../api/feed.js";
import { hasRole, needs, roleReason, session } from "../api/session.js";
import { agoText, mapNotation, parseNotation, shortNames, summary, timeText, types, visible } from "../api/values.js";
import { changedFields, changeType, fieldPath, fieldsOf, nodeOf, nodesOf, problemOf } from "../model/nodes.js";
import { inverse, remember, say } from "../model/undo.js";
import { button, copyText, errorBox, openMenu, tabList } from "../parts/dialog.js";
import { deletePath, duplicate, newDocument, rename } from "./document-actions.js";
import { authorizationOption, quotedForShell } from "../model/shell.js";

/** A list or map with more members is shown in parts. */
const membersMax = 200;

/** What was typed when the session ended, by the name of its document, until the same operator opens it again. */
const drafts = new Map();

/** Shows a document. `close` leaves it, if the panel can be closed. */
export function documentPanel(path, close = null) {
  const state = signal("loading");
  const stored = signal(null);
  const theirs = signal(null);
  const problem = signal("");
  const collections = signal([]);
  const tab = signal("fields");
  const isDirty = signal(false);
  const isFrozen = () => isPast() || !hasRole("editor");
  const structure = signal(0);
  let failure = null;
  let nodes = [];
  let text = "";
  const owner = session.peek()?.name;

  const show = (document) => {
    stored.set(document);
    nodes = nodesOf(document?.fields ?? {});
    text = mapNotation(document?.fields ?? {});
    isDirty.set(false);
    theirs.set(null);
    problem.set("");
    structure.update((number) => number + 1);
  };
  async function load() {
    try {
      const document = await getDocument(path);
      show(document);
      restoreDraft(document);
      state.set("ready");
    } catch (error) {
      failure = error;
      state.set("failed");
    }
    try { collections.set(await listCollections(path)); } catch { collections.set([]); }
  }
  effect(() => { viewer(); moment(); untracked(load); });
  guard.isDirty = () => isDirty.peek();
  onEnd(() => {
    guard.isDirty = () => false;
    // The session has ended while the operator was typing.
    if (owner && isDirty.peek() && !session.peek()) drafts.set(resourceName(path), { owner, before: stored.peek(), tab: tab.peek(), nodes, text });
  });

  /** Shows again what was typed before the session ended. `document` is what is stored now. */
  function restoreDraft(document) {
    const draft = drafts.get(resourceName(path));
    if (!draft || draft.owner !== owner) return;
    drafts.delete(resourceName(path));
    stored.set(draft.before);
    ({ nodes, text } = draft);
    tab.set(draft.tab);
    touch();
    if (document?.updateTime !== draft.before?.updateTime) theirs.set({ document });
    structure.update((number) => number + 1);
    say("These changes are not saved yet. You made them before your session ended.");
  }

  follow((changes) => {
    const own = changes.findLast((change) => change.path === path);
    if (own) {
      const next = own.after ?? null;
      if (next?.updateTime === stored.peek()?.updateTime) return;
      if (isDirty.peek()) theirs.set({ document: next }); else show(next);
    }
    if (changes.some((change) => change.path.startsWith(`${path}/`))) {
      listCollections(path).then((ids) => collections.set(ids), () => {});
    }
  });

  const touch = () => {
    let next;
    try { next = tab.peek() === "json" ? parsed() : fieldsOf(nodes, databaseName()); } catch (error) {
      isDirty.set(true);
      problem.set(error.message);
      return null;
    }
    problem.set("");
    isDirty.set(changedFields(stored.peek()?.fields ?? {}, next).length > 0 || !stored.peek());
    return next;
  };
  const parsed = () => parseNotation(text, `${databaseName()}/documents/`);

  async function save() {
    const fields = touch();
    if (!fields || !isDirty.peek()) return;
    const before = stored.peek();
    const names = changedFields(before?.fields ?? {}, fields);
    const query = new URLSearchParams();
    for (const name of names) query.append("updateMask.fieldPaths", fieldPath(name));
    if (before) query.set("currentDocument.updateTime", before.updateTime);
    else query.set("currentDocument.exists", "false");
    const changed = Object.fromEntries(names.filter((name) => name in fields).map((name) => [name, fields[name]]));
    try {
      const after = await call("PATCH", `${documentsURL(path)}?${query}`, { body: { fields: changed }, asViewer: true });
      // A user may be allowed to write a document but not to read it.
      const made = await getDocument(path).catch(() => null) ?? after;
      remember(`Saved ${path}`, [inverse(before, made)]);
      show(made);
    } catch (error) {
      if (error.code === "FAILED_PRECONDITION" || error.code === "ALREADY_EXISTS" || error.code === "NOT_FOUND") {
        theirs.set({ document: await getDocument(path).catch(() => null) });
      } else problem.set(error.message);
    }
  }
  const discard = () => show(stored.peek());
  const switchTab = (name) => {
    if (name === tab.peek()) return;
    if (isDirty.peek()) {
      // What was typed goes along, if it is valid.
      const fields = touch();
      if (!fields) { say(`First correct this: ${problem.peek()}`, { isError: true }); return; }
      nodes = nodesOf(fields);
      text = mapNotation(fields);
      structure.update((number) => number + 1);
    }
    tab.set(name);
  };

  const canEdit = () => hasRole("editor");
  const canCopy = () => canEdit() && Boolean(stored.peek());
  command({ label: "Save the document", keys: "Ctrl S", group: "Document", when: canEdit, run: save });
  command({ label: "Duplicate the document", keys: "D", group: "Document", when: canCopy, run: () => duplicate(stored.peek(), path) });
  command({ label: "Rename the document", keys: "", group: "Document", when: canCopy, run: () => rename(stored.peek(), path) });
  command({ label: "Delete the document", keys: "Delete", group: "Document", when: canEdit, run: () => deletePath(path, stored.peek()) });

  const addField = (list, isList) => {
    const node = nodeOf(isList ? String(list.length) : "", { stringValue: "" });
    node.isNew = true;
    list.push(node);
    touch();
    structure.update((number) => number + 1);
    requestAnimationFrame(() => document.querySelector(`[data-node="${node.id}"] input, [data-node="${node.id}"] textarea`)?.focus());
  };

  return h("div", { class: "document" },
    h("div", { class: "head" },
      h("h2", { class: "clip mono value grow", title: path }, visible(lastSegment(path))),
      tabList("Form", [["fields", "Fields"], ["json", "JSON"]], tab, switchTab),
      () => viewer() ? null : iconButton("more", "More about this document", (event) => openMenu(event.currentTarget, menu()),
        { "aria-haspopup": "menu" }),
      close ? iconButton("close", "Close", close) : null),
    () => theirs() ? h("div", { class: "banner", role: "alert" },
      h("span", { class: "grow" }, theirs().document ? "This document was changed meanwhile." : "This document was deleted meanwhile."),
      button("Take theirs", () => show(theirs.peek().document)),
      button("Keep mine", () => { stored.set(theirs.peek().document); theirs.set(null); touch(); })) : null,
    () => state() === "loading" ? h("div", { class: "busy" }) : state() === "failed" ? errorBox(failure, load)
      : h("div", { class: "fill" },
        () => stored() || isDirty() ? null : h("div", { class: "banner" }, h("span", { class: "grow" },
          collections().length > 0 ? "There is no document here, only collections below it."
            : isPast() ? "There was no document at this path." : "There is no document at this path.")),
        () => tab() === "json" ? jsonEditor() : h("div", { class: "scroll" }, fieldsEditor(), below())),
    h("div", { class: "state", style: { "min-height": "40px" } },
      () => problem() ? h("span", { class: "problem clip grow", role: "alert" }, problem())
        : h("span", { class: "clip grow", title: stored()?.updateTime ?? "" }, stored() ? `updated ${agoText(stored().updateTime)}, created ${
          timeText(stored().createTime).slice(0, 16)}` : ""),
      () => isDirty() ? [button("Discard", discard, { kind: "quiet" }),
        button("Save", save, { kind: "primary", disabled: problem() !== "", title: "Save (Ctrl S)" })] : null));

  function menu() {
    const json = () => mapNotation(stored.peek()?.fields ?? {});
    const exists = Boolean(stored.peek());
    return [
      exists ? { label: "Duplicate", icon: "copy", hint: "D", needs: "editor", run: () => duplicate(stored.peek(), path) } : null,
      exists ? { label: "Rename…", needs: "editor", run: () => rename(stored.peek(), path) } : null,
      { label: "New collection below…", icon: "plus", needs: "editor", run: () => newDocument("", path) },
      null,
      { label: "Copy the path", run: () => copyText(path, "Path copied") },
      { label: "Copy the resource name", run: () => copyText(resourceName(path), "Name copied") },
      { label: "Copy as JSON", run: () => copyText(json(), "JSON copied") },
      { label: "Copy as hearth set", run: () => copyText(`hearth set ${quotedForShell(path)} ${quotedForShell(json())}`, "Command copied") },
      { label: "Copy as curl", run: () => copyText(`curl ${authorizationOption()} ${quotedForShell(location.origin + documentsURL(path))}`,
        "Command copied") },
      null,
      { label: "Delete…", icon: "trash", isDanger: true, needs: "editor", run: () => deletePath(path, stored.peek()) },
    ].filter((item, index, all) => item || (index > 0 && all[index - 1]));
  }

  function jsonEditor() {
    return h("textarea", { class: "json-area", spellcheck: "false", "aria-label": "Fields as JSON", readonly: () => isFrozen(), title: roleReason("editor") || null,
      value: () => { structure(); return text; },
      oninput: (event) => { text = event.target.value; touch(); } });
  }

  function fieldsEditor() {
    return h("fieldset", { class: "fields", title: roleReason("editor") || null }, () => {
      structure();
      const isOpen = !isFrozen();
      return [
        nodes.length === 0 && stored() ? h("p", { class: "muted pad" }, "This document has no fields.") : null,
        nodes.map((node) => nodeRow(node, nodes, false, 0)),
        isOpen ? h("div", { class: "row", style: { padding: "8px 0 0" } },
          h("button", { type: "button", class: "button quiet", onclick: () => addField(nodes, false) }, icon("plus"), "Field")) : null,
      ];
    });
  }

  function nodeRow(node, list, isList, depth) {
    const isGroup = node.type === "map" || node.type === "array";
    const wrong = signal("");
    const change = () => {
      wrong.set(problemOf(node, databaseName()));
      row.classList.add("dirty");
      touch();
    };
    const rebuild = () => { touch(); structure.update((number) => number + 1); };
    const label = node.key || "new field";
    const row = h("div", { class: `node ${depth > 0 ? "deep" : ""}`, "data-node": node.id },
      h("div", { class: "name" },
        isGroup ? h("button", { type: "button", class: "toggle", "aria-expanded": String(node.isOpen), "aria-label": `Members of ${label}`,
          onclick: () => { node.isOpen = !node.isOpen; structure.update((number) => number + 1); } }, icon("right")) : null,
        isList ? h("span", { class: "muted mono", style: { padding: "0 6px" } }, node.key)
          : h("input", { class: "input", value: node.key, "aria-label": "Name of the field", placeholder: "name", spellcheck: "false",
            autocomplete: "off", readonly: isFrozen(),
            oninput: (event) => { node.key = event.target.value; change(); } })),
      h("select", { class: "select", "aria-label": `Type of ${label}`, disabled: isFrozen(), onchange: (event) => {
        changeType(node, event.target.value, new Date().toISOString());
        rebuild();
      } }, types.map(([name, word]) => h("option", { value: name, selected: name === node.type, title: word }, shortNames[name]))),
      h("div", { class: "entry" }, entry(node, label, change, wrong),
        h("p", { class: "problem", role: "alert" }, () => wrong())),
      isFrozen() ? null : iconButton("close", `Delete ${label}`, () => {
        list.splice(list.indexOf(node), 1);
        if (isList) list.forEach((each, index) => { each.key = String(index); });
        rebuild();
      }));
    if (!isGroup || !node.isOpen) return row;
    const shown = node.items.slice(0, node.shown ?? membersMax);
    return [row, h("div", { class: "items", style: { "padding-left": "14px" } },
      shown.map((item) => nodeRow(item, node.items, node.type === "array", depth + 1)),
      shown.length < node.items.length ? button(`Show ${Math.min(membersMax, node.items.length - shown.length)} more`, () => {
        node.shown = shown.length + membersMax;
        structure.update((number) => number + 1);
      }, { kind: "quiet" }) : null,
      isFrozen() ? null : h("div", {}, h("button", { type: "button", class: "button quiet", onclick: () => addField(node.items, node.type === "array") },
        icon("plus"), node.type === "array" ? "Element" : "Field")))];
  }

  function entry(node, label, change, wrong) {
    const name = `Value of ${label}`;
    const input = (properties) => h("input", { class: `input mono value type-${node.type}`, "aria-label": name, spellcheck: "false",
      autocomplete: "off", value: node.text, readonly: isFrozen(), "aria-invalid": () => wrong() ? "true" : null,
      oninput: (event) => { node.text = event.target.value; change(); }, ...properties });
    switch (node.type) {
      case "map": case "array": {
        const count = node.items.length;
        const word = node.type === "map" ? (count === 1 ? "field" : "fields") : (count === 1 ? "element" : "elements");
        return h("button", { type: "button", class: "item mono", onclick: () => {
          node.isOpen = !node.isOpen;
          structure.update((number) => number + 1);
        } }, h("span", { class: "clip value grow", style: { "text-align": "left" } }, groupSummary(node)),
        h("span", { class: "muted small" }, `${count} ${word}`));
      }
      case "boolean":
        return h("select", { class: "select type-boolean", "aria-label": name, disabled: isFrozen(), onchange: (event) => {
          node.text = event.target.value;
          change();
        } }, ["true", "false"].map((text) => h("option", { value: text, selected: text === node.text }, text)));
      case "null": return h("span", { class: "type-null mono", style: { padding: "5px 9px", display: "inline-block" } }, "null");
      case "string": return h("textarea", { class: "area value", rows: 1, "aria-label": name, spellcheck: "false", readonly: isFrozen(), value: node.text,
        oninput: (event) => { node.text = event.target.value; change(); } });
      case "timestamp": return [input(), h("p", { class: "hint" }, `${timeText(node.text)} here, ${agoText(node.text)}`)];
      case "reference": return h("div", { class: "row" }, input(), h("a", { class: "icon-button", title: `Go to ${node.text}`,
        "aria-label": `Go to ${node.text}`, href: addressOf(node.text) }, icon("link")));
      default: return input();
    }
  }

  function groupSummary(node) {
    try {
      const value = fieldsOf([{ ...node, key: "value" }], databaseName()).value;
      return summary(value, 160);
    } catch { return node.type === "map" ? "{…}" : "[…]"; }
  }

  function below() {
    return h("section", { class: "below", "aria-label": "Collections of this document" },
      h("h3", {}, "Collections"),
      h("div", { class: "chips" },
        () => collections().map((id) => h("a", { class: "chip", href: addressOf(`${path}/${id}`, viewParameters()) }, icon("data"), visible(id))),
        h("button", { type: "button", class: "chip", onclick: () => newDocument("", path), ...needs("editor") }, icon("plus"), "Collection")));
  }

  function viewParameters() { return { view: place.peek().parameters.view }; }
}
