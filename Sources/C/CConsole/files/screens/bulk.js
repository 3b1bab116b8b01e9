// The selected documents of a table: edit a field, export and delete them, each as one step of undo.
import { h, iconButton } from "../core/dom.js";
import { signal } from "../core/signals.js";
import { moment } from "../core/address.js";
import { command } from "../core/keys.js";
import { needs } from "../api/session.js";
import { commitAll, databaseName, documentNames, getDocuments, lastSegment, pathOf } from "../api/client.js";
import { doubleText, numberText, typeOf, visible } from "../api/values.js";
import { fieldPath } from "../model/nodes.js";
import { apiPath, conditionValue } from "../model/query.js";
import { inverse, remember, say } from "../model/undo.js";
import { button, confirmAction, showDialog } from "../parts/dialog.js";
import { documentLine, saveText } from "./transfer.js";

/** The documents that can be selected at once. */
const selectedMax = 5000;

/** The selection of a collection: a signal of paths, and what is done with it. `fields` returns the known field names. */
export function selectionOf(collection, source, fields) {
  const paths = signal(new Set());
  const isBusy = signal(false);
  let anchor = -1;

  /** Selects or releases a row; `isRange` all rows since the last one. */
  function toggle(index, isRange = false) {
    const next = new Set(paths.peek());
    const from = isRange && anchor >= 0 ? Math.min(anchor, index) : index;
    const to = isRange && anchor >= 0 ? Math.max(anchor, index) : index;
    const isOn = isRange || !next.has(pathAt(index));
    for (let each = from; each <= to; each += 1) {
      const path = pathAt(each);
      if (path && isOn && next.size < selectedMax) next.add(path);
      else if (path && !isOn) next.delete(path);
    }
    anchor = index;
    paths.set(next);
  }
  const pathAt = (index) => { const row = source.row(index); return row?.createTime ? pathOf(row.name) : ""; };
  const clear = () => paths.set(new Set());
  async function selectAll() {
    try {
      const names = await documentNames(collection, source.range(), selectedMax);
      paths.set(new Set(names.map(pathOf)));
      if (names.length === selectedMax) say(`The first ${numberText(selectedMax)} documents are selected`);
    } catch (error) { say(error.message, { isError: true }); }
  }
  command({ label: "Select all documents", keys: "Ctrl A", group: "Table", isForPage: true, run: selectAll });

  /** Changes the selected documents: `make(document)` returns a write. One step of undo takes all of it back. */
  async function change(label, doing, make) {
    isBusy.set(true);
    const inverses = [];
    try {
      const documents = await getDocuments([...paths.peek()]);
      const words = (count) => `${numberText(count)} ${count === 1 ? "document" : "documents"}`;
      try {
        await commitAll(documents.map(make), { onResults: (part, times, done) => {
          part.forEach((write, index) => {
            const before = documents[done - part.length + index];
            inverses.push(inverse(before, write.delete ? null : { name: before.name, updateTime: times[index] }));
          });
          if (done < documents.length) say(`${doing}: ${numberText(done)} of ${words(documents.length)}`);
        } });
        remember(`${label} ${words(documents.length)}`, inverses);
      } catch (error) {
        if (inverses.length > 0) remember(`${label} ${words(inverses.length)}`, inverses);
        throw error;
      }
    } catch (error) {
      say(error.code === "FAILED_PRECONDITION" || error.code === "NOT_FOUND"
        ? `A document changed meanwhile. ${inverses.length > 0 ? `${numberText(inverses.length)} were changed; undo takes them back.` : "Nothing was changed."}`
        : error.message, { isError: true });
    }
    isBusy.set(false);
  }

  async function editField() {
    const count = paths.peek().size;
    const state = { name: fields()[0] ?? "", action: "set", value: "" };
    const problem = signal("");
    const action = signal("set");
    const make = await showDialog(`Edit a field of ${numberText(count)} ${count === 1 ? "document" : "documents"}`, () => [
      h("div", { class: "field" }, h("label", { for: "bulk-field" }, "Field"), h("input", { class: "input mono", id: "bulk-field", list: "bulk-fields",
        autocomplete: "off", value: state.name, oninput: (event) => { state.name = event.target.value; } }),
      h("datalist", { id: "bulk-fields" }, fields().map((name) => h("option", { value: name })))),
      h("div", { class: "field" }, h("label", { for: "bulk-action" }, "What to do"), h("select", { class: "select", id: "bulk-action",
        onchange: (event) => { state.action = event.target.value; action.set(state.action); } },
      [["set", "Set it to a value"], ["increment", "Add a number to it"], ["delete", "Delete it"]].map(([name, text]) => h("option", { value: name }, text)))),
      () => action() === "delete" ? null : h("div", { class: "field" }, h("label", { for: "bulk-value" }, action() === "set" ? "Value" : "Number"),
        h("input", { class: "input mono", id: "bulk-value", autocomplete: "off", placeholder: action() === "set" ? 'text, 12.5, true, "text", {"$timestamp": …}' : "1 or -0.5",
          value: state.value, oninput: (event) => { state.value = event.target.value; } })),
      h("p", { class: "problem", role: "alert" }, () => problem()),
    ], (close) => [button("Cancel", () => close()), button(`Change ${numberText(count)} ${count === 1 ? "document" : "documents"}`, () => {
      try { close(fieldWrite(state)); } catch (error) { problem.set(error.message); }
    }, { kind: "primary" })]);
    if (make) change(`Changed ${state.name} of`, "Changing", make);
  }

  async function remove() {
    const count = paths.peek().size;
    const words = `${numberText(count)} ${count === 1 ? "document" : "documents"}`;
    const isSure = await confirmAction({ title: `Delete ${words}?`, action: `Delete ${words}`, word: count > 100 ? lastSegment(collection) : "",
      body: [h("p", {}, `This deletes ${words} of `, h("strong", { class: "mono value" }, visible(collection)), "."),
        h("p", { class: "muted" }, "Collections below them stay. You can undo it.")] });
    if (!isSure) return;
    await change("Deleted", "Deleting", (document) => ({ delete: document.name, currentDocument: { updateTime: document.updateTime } }));
    clear();
  }

  async function exportThem() {
    try {
      const documents = await getDocuments([...paths.peek()]);
      saveText(`${documents.map(documentLine).join("\n")}\n`, `${lastSegment(collection)}.ndjson`, "application/x-ndjson");
      say(`Exported ${numberText(documents.length)} documents`);
    } catch (error) { say(error.message, { isError: true }); }
  }

  /** The bar above the table, while documents are selected. */
  function bar() {
    return () => paths().size === 0 ? null : h("div", { class: "banner selection", role: "region", "aria-label": "Selected documents" },
      h("strong", { role: "status" }, `${numberText(paths().size)} selected`),
      paths().size < Math.min(source.count(), selectedMax) ? button(source.count() > selectedMax ? `Select the first ${numberText(selectedMax)}`
        : `Select all ${numberText(source.count())}`, selectAll, { kind: "quiet" }) : null,
      h("span", { class: "grow" }), isBusy() ? h("span", { class: "muted small" }, "working…") : null,
      button("Edit field…", editField, { disabled: isBusy() || moment() !== "", ...needs("editor") }), button("Export", exportThem),
      button("Delete…", remove, { kind: "danger", disabled: isBusy() || moment() !== "", ...needs("editor") }), iconButton("close", "Clear the selection", clear));
  }
  return { paths, toggle, clear, bar, remove };
}

/** Returns a function that makes the write of a document. Throws an error with a sentence. */
function fieldWrite({ name, action, value }) {
  if (name.trim() === "") throw new Error("Name the field.");
  const path = apiPath(name);
  const parsed = action === "delete" ? null : conditionValue(value, databaseName());
  if (action === "increment" && !["integer", "double"].includes(typeOf(parsed))) throw new Error("Write a number, such as 1 or -0.5.");
  const segments = name.trim().startsWith("`") ? [name.trim().slice(1, -1)] : name.trim().split(".");
  const nested = (rest) => rest.length === 0 ? parsed : { mapValue: { fields: { [rest[0]]: nested(rest.slice(1)) } } };
  return (document) => {
    const currentDocument = { updateTime: document.updateTime };
    const update = { name: document.name };
    if (action === "increment") return { update, updateMask: { fieldPaths: [] }, currentDocument, updateTransforms: [{ fieldPath: path, increment: parsed }] };
    if (action === "set") update.fields = { [segments[0]]: nested(segments.slice(1)) };
    return { update, updateMask: { fieldPaths: [path] }, currentDocument };
  };
}

/** The text with which a cell is edited, and a function from a text to a value, or `null` if a cell cannot edit it. */
export function cellText(value) {
  switch (typeOf(value)) {
    case "missing": case "null": return "";
    case "string": return value.stringValue.length > 2000 || value.stringValue.includes("\n") ? null : value.stringValue;
    case "integer": return String(value.integerValue);
    case "double": return doubleText(value.doubleValue);
    case "boolean": return String(value.booleanValue);
    case "timestamp": return value.timestampValue;
    case "geo": return `${value.geoPointValue.latitude ?? 0}, ${value.geoPointValue.longitude ?? 0}`;
    case "reference": return value.referenceValue.split("/documents/").pop();
    default: return null;
  }
}

/** The write that gives one field of a document a value. */
export const cellWrite = (document, name, value) => ({
  update: { name: document.name, fields: { [name]: value } }, updateMask: { fieldPaths: [fieldPath(name)] },
  currentDocument: { updateTime: document.updateTime },
});
