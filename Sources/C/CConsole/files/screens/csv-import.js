// Asks how a CSV file becomes documents, with the first rows as they would be stored.
import { h } from "../core/dom.js";
import { signal } from "../core/signals.js";
import { resourceName } from "../api/client.js";
import { numberText, summary, typeOf, visible } from "../api/values.js";
import { csvDocuments, csvTable, csvText, csvTypes } from "../model/csv.js";
import { button, showDialog } from "../parts/dialog.js";
import { automaticID } from "./document-actions.js";

/** The largest CSV file that the page reads, in bytes. `hearth import` reads files of any size. */
const bytesMax = 64 << 20;
const previewRows = 6;
const previewColumns = 8;
/** The choice of random IDs, which no column can be named like. */
const randomIDs = "";

/** Whether a file is CSV, by its name. */
export const isCSV = (file) => /\.(csv|tsv)$/i.test(file.name);

/** Asks how a file becomes documents. Resolves to them, `[{ path, fields }]`, or to `null`. Throws if the file cannot be read. */
export async function askCSV(file) {
  if (file.size > bytesMax) throw new Error("the file is larger than 64 MiB; use hearth import");
  const table = csvTable(csvText(await file.arrayBuffer()), file.name);
  const collection = signal(file.name.replace(/\.(csv|tsv)$/i, "").replaceAll("/", "_"));
  const id = signal(table.idColumn || randomIDs);
  const isInferred = signal(false);
  const made = () => {
    const types = csvTypes(table, isInferred());
    try {
      if (!table.hasPaths && (collection() === "" || collection().split("/").length % 2 === 0)) throw new Error("Name a collection, such as products.");
      return { types, documents: csvDocuments(table, { collection: collection(), id: id(), types, base: resourceName(""), newID: automaticID }) };
    } catch (error) { return { types, documents: [], problem: error.message }; }
  };
  const found = signal(made());
  const again = () => found.set(made());
  const untyped = table.columns.some((column) => column.type === "");
  return showDialog(`Import ${visible(file.name)}`, () => [
    table.hasPaths ? h("p", { class: "muted" }, "The column __path__ names each document.") : [
      h("div", { class: "field" }, h("label", { for: "csv-collection" }, "Collection"), h("input", { class: "input mono", id: "csv-collection", autocomplete: "off",
        value: collection(), oninput: (event) => { collection.set(event.target.value.trim().replace(/^\/|\/$/g, "")); again(); } })),
      h("div", { class: "field" }, h("label", { for: "csv-id" }, "IDs of the documents"), h("select", { class: "select", id: "csv-id",
        onchange: (event) => { id.set(event.target.value); again(); } },
      table.columns.map(({ name }) => h("option", { value: name, selected: name === id.peek() }, `Column ${visible(name)}`)),
      h("option", { value: randomIDs, selected: id.peek() === randomIDs }, "Random")))],
    untyped ? h("label", { class: "row" }, h("input", { type: "checkbox", onchange: (event) => { isInferred.set(event.target.checked); again(); } }),
      "Find the types of columns without one, such as numbers and times") : null,
    () => preview(table, found()),
    h("p", { class: "problem value", role: "alert" }, () => found().problem ?? ""),
  ], (close) => [button("Cancel", () => close(null)),
    h("button", { type: "button", class: "button primary", disabled: () => found().documents.length === 0, onclick: () => close(found.peek().documents) },
      () => `Continue with ${numberText(found().documents.length)} ${found().documents.length === 1 ? "document" : "documents"}`)]).then((documents) => documents ?? null);
}

/** The first rows as documents, or as they are in the file while they cannot be documents. */
function preview(table, { types, documents }) {
  const columns = table.columns.map((column, index) => ({ ...column, index, type: types[index] })).filter(({ name }) => name !== "__path__" && name !== "__id__");
  const shown = columns.slice(0, previewColumns);
  return h("div", { class: "scroll rows-preview", tabindex: "0", role: "region", "aria-label": "The first rows" }, h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Document"), shown.map(({ name, type }) => h("th", { scope: "col" }, visible(name), h("span", { class: "muted" }, ` ${type}`))),
      columns.length > shown.length ? h("th", { scope: "col" }, `${numberText(columns.length - shown.length)} more`) : null)),
    h("tbody", {}, table.rows.slice(0, previewRows).map((row, at) => h("tr", {}, h("td", { class: "mono value" }, visible(documents[at]?.path ?? "–")),
      shown.map(({ name, index }) => {
        const value = documents[at]?.fields[name];
        return h("td", { class: `value type-${typeOf(value)}` }, documents[at] ? value ? summary(value, 40) : h("span", { class: "muted" }, "–")
          : visible(row.cells[index].text.slice(0, 40)));
      }), columns.length > shown.length ? h("td", {}, "…") : null)))));
}
