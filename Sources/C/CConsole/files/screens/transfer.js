// Documents in and out: files that are chosen or dropped, and collections as files.
import { commit, lastSegment, listDocuments, pathOf, resourceName } from "../api/client.js";
import { mapNotation, numberText, parseNotation } from "../api/values.js";
import { say } from "../model/undo.js";
import { readTree } from "../model/tree.js";

/** A larger collection is exported with `hearth export`. */
const exportedMax = 50_000;

/** Writes documents, `[{ path, fields }]`, in commits of 400. */
export async function importDocuments(documents, progress) {
  for (let start = 0; start < documents.length; start += 400) {
    await commit(documents.slice(start, start + 400).map(({ path, fields }) => ({
      update: { name: resourceName(path), fields } })));
    progress(Math.min(documents.length, start + 400));
  }
}

/** Imports the files that a user chose or dropped. */
export async function importFiles(files) {
  for (const file of files) {
    try {
      const documents = readTree(await file.text(), resourceName(""), parseNotation);
      await importDocuments(documents, (count) => say(`Importing ${file.name}: ${numberText(count)} of ${numberText(documents.length)}`));
      say(`Imported ${numberText(documents.length)} documents from ${file.name}`);
    } catch (error) { say(`${file.name}: ${error.message}`, { isError: true }); }
  }
}

/** Lets a browser save a text. */
function saveText(text, name, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Saves the documents of a collection as lines of `{"path": …, "fields": …}`, which `hearth import` reads. */
export async function exportCollection(path) {
  const lines = [];
  let pageToken;
  try {
    do {
      const page = await listDocuments(path, { pageSize: 300, pageToken, showMissing: false });
      for (const { name, fields } of page.documents ?? []) {
        // Line breaks in texts are escaped, so the others are only layout.
        lines.push(`{"path": ${JSON.stringify(pathOf(name))}, "fields": ${mapNotation(fields ?? {}).replace(/\n\s*/g, " ")}}`);
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
