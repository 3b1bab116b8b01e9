// Documents in and out: files that are chosen or dropped, and collections as files.
import { h } from "../core/dom.js";
import { signal } from "../core/signals.js";
import { commitAll, getDocuments, lastSegment, listDocuments, pathOf, resourceName } from "../api/client.js";
import { mapNotation, numberText, parseNotation, visible } from "../api/values.js";
import { fieldPath } from "../model/nodes.js";
import { inverse, remember, say } from "../model/undo.js";
import { button, showDialog } from "../parts/dialog.js";
import { readTree } from "../model/tree.js";
import { askCSV, isCSV } from "./csv-import.js";

/** A larger collection is exported with `hearth export`. */
const exportedMax = 50_000;

/** Of larger imports, the console does not read what they replace, so they cannot be undone. */
const undoneMax = 5000;

/** Writes documents, `[{ path, fields }]`, in commits of 400. */
export async function importDocuments(documents, progress, { stop, makes = (write) => write, onResults = () => {} } = {}) {
  await commitAll(documents.map(({ path, fields }) => makes({ update: { name: resourceName(path), fields } })), { stop, onResults: (part, times, done) => {
    onResults(part, times, done);
    progress(done);
  } });
}

/** What to do with documents that exist: the name, the words, and the write, or `null` for none. */
const modes = [
  ["replace", "Replace them", (write) => write],
  ["merge", "Add and change the fields of the files, keep the others", (write) => ({ ...write,
    updateMask: { fieldPaths: Object.keys(write.update.fields).map(fieldPath) } })],
  ["skip", "Leave them as they are", () => null],
];

/** A hidden input that lets a user choose files for `take`. `click()` opens it. */
export function fileInput(label, take, properties = {}) {
  return h("input", { type: "file", multiple: true, hidden: true, "aria-label": label, onchange: (event) => {
    const chosen = [...event.target.files];
    // A file that was corrected can be chosen again.
    event.target.value = "";
    take(chosen);
  }, ...properties });
}

/** An input for files of documents. */
export const importInput = () => fileInput("Files to import", importFiles, { accept: ".json,.ndjson,.jsonl,.csv,.tsv" });

/** Imports the files that a user chose or dropped. Shows first what would happen, unless all documents are new. */
export async function importFiles(files) {
  const read = [];
  for (const file of files) {
    try {
      const made = isCSV(file) ? await askCSV(file) : readTree(await file.text(), resourceName(""), parseNotation);
      if (!made) return;
      read.push({ name: file.name, documents: made });
    } catch (error) {
      read.push({ name: file.name, documents: [], problem: error.message });
    }
  }
  const wanted = new Map(read.flatMap(({ documents }) => documents).map((each) => [each.path, each]));
  const documents = [...wanted.values()];
  const existing = new Map();
  try {
    if (documents.length <= undoneMax) for (const each of await getDocuments(documents.map(({ path }) => path))) existing.set(pathOf(each.name), each);
  } catch (error) { say(error.message, { isError: true }); return; }
  const isKnown = documents.length <= undoneMax;
  const words = (count) => `${numberText(count)} ${count === 1 ? "document" : "documents"}`;
  const name = files.length === 1 ? files[0].name : `${numberText(files.length)} files`;
  if (read.every(({ problem }) => !problem) && isKnown && existing.size === 0 && documents.length > 0) {
    await run("replace", (done) => say(`Importing ${name}: ${numberText(done)} of ${words(documents.length)}`));
    return;
  }
  const mode = signal("replace");
  const done = signal(-1);
  const stop = new AbortController();
  await showDialog(`Import ${name}`, () => [
    h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "File"), h("th", { scope: "col", class: "end" }, "Documents"))),
      h("tbody", {}, read.map((each) => h("tr", {}, h("td", { class: "value" }, visible(each.name),
        each.problem ? h("p", { class: "problem value" }, each.problem) : null), h("td", { class: "end" }, numberText(each.documents.length)))))),
    documents.length === 0 ? null : h("p", {}, isKnown ? `${words(documents.length - existing.size)} would be created, ${words(existing.size)} ${existing.size === 1 ? "exists" : "exist"} already.`
      : `${words(documents.length)}. So many are not compared with those that exist, and the import cannot be undone.`),
    documents.length === 0 || (isKnown && existing.size === 0) ? null : h("div", { class: "field" }, h("label", { for: "import-mode" }, "Documents that exist"),
      h("select", { class: "select", id: "import-mode", onchange: (event) => mode.set(event.target.value) }, modes.filter(([each]) => isKnown || each !== "skip")
        .map(([each, text]) => h("option", { value: each }, text)))),
    () => done() < 0 ? null : h("div", { class: "stack", style: { gap: "4px" } }, h("progress", { max: documents.length, value: done(), "aria-label": "Imported documents" }),
      h("span", { class: "muted small", role: "status" }, `${numberText(done())} of ${words(documents.length)}`)),
  ], (close) => [button(() => done() < 0 ? "Cancel" : "Stop", () => { stop.abort(); close(); }),
    h("button", { type: "button", class: "button primary", disabled: () => documents.length === 0 || done() >= 0, onclick: async () => {
      done.set(0);
      await run(mode.peek(), (count) => done.set(count), stop.signal);
      close();
    } }, `Import ${words(documents.length)}`)]);

  async function run(chosen, progress, stopped) {
    const make = modes.find(([each]) => each === chosen)[2];
    const written = documents.filter(({ path }) => !existing.has(path) || make({ update: { fields: {} } }));
    const inverses = [];
    try {
      await importDocuments(written, progress, { stop: stopped, makes: (write) => {
        const path = pathOf(write.update.name);
        const before = existing.get(path);
        const change = before || !isKnown ? make(write) : write;
        return isKnown ? { ...change, currentDocument: before ? { updateTime: before.updateTime } : { exists: false } } : change;
      }, onResults: (part, times) => part.forEach((write, index) => {
        if (isKnown) inverses.push(inverse(existing.get(pathOf(write.update.name)) ?? null, { name: write.update.name, updateTime: times[index] }));
      }) });
      const count = stopped?.aborted ? inverses.length : written.length;
      if (isKnown && inverses.length > 0) remember(`Imported ${words(count)} from ${name}`, inverses);
      else say(isKnown ? "Nothing was imported" : `Imported ${words(count)} from ${name}`);
    } catch (error) {
      if (inverses.length > 0) remember(`Imported ${words(inverses.length)}, then failed: ${error.message}`, inverses);
      else say(`${name}: ${error.message}`, { isError: true });
    }
  }
}

/** Lets a browser save a text. */
export function saveText(text, name, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A document as a line of `{"path": …, "fields": …}`. Line breaks in texts are escaped, so the others are only layout. */
export function documentLine({ name, fields }) {
  return `{"path": ${JSON.stringify(pathOf(name))}, "fields": ${mapNotation(fields ?? {}).replace(/\n\s*/g, " ")}}`;
}

/** Saves the documents of a collection as lines of `{"path": …, "fields": …}`, which `hearth import` reads. */
export async function exportCollection(path) {
  const lines = [];
  let pageToken;
  try {
    do {
      const page = await listDocuments(path, { pageSize: 300, pageToken, showMissing: false });
      for (const { name, fields } of page.documents ?? []) {
        lines.push(documentLine({ name, fields }));
      }
      pageToken = page.nextPageToken;
      say(`Exporting ${path}: ${numberText(lines.length)} documents`);
    } while (pageToken && lines.length < exportedMax);
    saveText(`${lines.join("\n")}\n`, `${lastSegment(path)}.ndjson`, "application/x-ndjson");
    say(pageToken ? `Exported the first ${numberText(lines.length)} documents; hearth export writes all of them`
      : `Exported ${numberText(lines.length)} documents of ${path}`);
  } catch (error) { say(error.message, { isError: true }); }
}

/** Lets files be dropped on an element. */
export function takeDrops(element, take) {
  element.addEventListener("dragover", (event) => { event.preventDefault(); element.classList.add("drop"); });
  element.addEventListener("dragleave", () => element.classList.remove("drop"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    element.classList.remove("drop");
    take([...event.dataTransfer.files]);
  });
}
