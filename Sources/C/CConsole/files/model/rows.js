// The documents of a collection as rows with ranks. Small collections are read whole; of large ones, only the pages that
// are shown.
import { typeOf } from "../api/values.js";
import { signal } from "../core/signals.js";
import { countDocuments, lastSegment, listDocuments, parentOf, pathOf, resourceName, runQuery } from "../api/client.js";

const rowsPerPage = 100;
const pagesMax = 40;

/** The fields that describe a document best, in this order. */
const telling = ["name", "title", "displayName", "label", "subject", "email", "text", "status", "kind", "description"];

/** Chooses the field that stands beside the id in a list, or "". */
export function previewField(documents) {
  const fields = documents.map((document) => document.fields ?? {});
  const found = telling.find((name) => fields.some((each) => each[name]));
  if (found) return found;
  const counts = new Map();
  for (const each of fields) {
    for (const [name, value] of Object.entries(each)) {
      if (value.stringValue !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? Object.keys(fields[0] ?? {}).sort()[0] ?? "";
}

/** The fields of some documents, the most frequent first, with the types that occur. */
export function inferColumns(documents) {
  const found = new Map();
  for (const document of documents) {
    for (const [name, value] of Object.entries(document.fields ?? {})) {
      const entry = found.get(name) ?? { name, count: 0, types: new Set() };
      entry.count += 1;
      entry.types.add(typeOf(value));
      found.set(name, entry);
    }
  }
  const rank = (name) => { const index = telling.indexOf(name); return index < 0 ? 99 : index; };
  return [...found.values()].sort((a, b) =>
    rank(a.name) - rank(b.name) || b.count - a.count || (a.name < b.name ? -1 : 1));
}

export function rowsOf(path) {
  const id = lastSegment(path);
  const parent = parentOf(path);
  const count = signal(0);
  const version = signal(0);
  const state = signal("loading");
  const sample = signal([]);
  const isCounted = signal(true);
  const changed = new Map();
  let error = null;
  let pages = new Map();
  let asked = new Set();
  let stop = new AbortController();
  let prefix = "";
  let isWhole = false;
  let fields = [];
  let waiting = 0;

  const from = [{ collectionId: id }];
  const bump = () => version.update((number) => number + 1);

  function query(offset, limit) {
    const structured = { from, orderBy: [{ field: { fieldPath: "__name__" } }], offset, limit };
    if (fields.length > 0) structured.select = { fields: fields.map((fieldPath) => ({ fieldPath })) };
    const where = range();
    if (where) structured.where = where;
    return structured;
  }

  function range() {
    if (!prefix) return undefined;
    const compare = (op, text) => ({
      fieldFilter: { field: { fieldPath: "__name__" }, op, value: { referenceValue: resourceName(`${path}/${text}`) } },
    });
    const filters = [compare("GREATER_THAN_OR_EQUAL", prefix), compare("LESS_THAN", `${prefix}\u{10ffff}`)];
    return { compositeFilter: { op: "AND", filters } };
  }

  async function load({ isQuiet = false } = {}) {
    stop.abort();
    stop = new AbortController();
    const mine = stop.signal;
    asked = new Set();
    if (!isQuiet) { pages = new Map(); state.set("loading"); }
    try {
      if (prefix) {
        isWhole = false;
        const total = await countDocuments(parent, { from, where: range() }, { signal: mine });
        pages = new Map();
        count.set(total);
      } else {
        const page = await listDocuments(path, { pageSize: rowsPerPage }, mine);
        const documents = page.documents ?? [];
        sample.set(documents.slice(0, 40));
        isWhole = !page.nextPageToken;
        pages = new Map([[0, documents]]);
        isCounted.set(isWhole);
        if (isWhole) count.set(documents.length);
        else {
          // Rows first, the count after them.
          count.set(Math.max(count.peek(), documents.length));
          state.set("ready");
          bump();
          countDocuments(parent, { from }, { signal: mine }).then((total) => {
            isCounted.set(true);
            // Names without a document are listed, but not counted. Above one page they are left out.
            pages = new Map();
            asked = new Set();
            count.set(total);
            bump();
          }, () => {});
        }
      }
      error = null;
      state.set("ready");
    } catch (failure) {
      if (failure.name === "AbortError") return;
      error = failure;
      count.set(0);
      state.set("failed");
    }
    bump();
  }

  async function fetchPage(number) {
    if (pages.has(number) || asked.has(number)) return;
    asked.add(number);
    const mine = stop.signal;
    try {
      const parts = await runQuery(parent, query(number * rowsPerPage, rowsPerPage), { signal: mine });
      if (mine.aborted) return;
      const documents = parts.filter((part) => part.document).map((part) => part.document);
      pages.set(number, documents);
      if (sample.peek().length === 0) sample.set(documents.slice(0, 40));
      while (pages.size > pagesMax) pages.delete(pages.keys().next().value);
      bump();
    } catch { /* The next scroll asks again. */ } finally { asked.delete(number); }
  }

  return {
    path, count, version, state, sample, isCounted,
    get error() { return error; },
    get isWhole() { return isWhole; },
    load,
    /** The filter that the rows meet, or `undefined`. */
    range,
    /** Shows only ids that begin with a text. */
    setPrefix(text) {
      if (text === prefix) return;
      prefix = text;
      load();
    },
    /** Chooses the fields that pages contain; none means all. */
    setFields(names) { fields = names; },
    row(index) { return pages.get(Math.floor(index / rowsPerPage))?.[index % rowsPerPage]; },
    /** Is told which rows are shown, and reads their pages once the list stands still. */
    need(first, last) {
      clearTimeout(waiting);
      if (last <= first) return;
      const numbers = new Set([Math.floor(first / rowsPerPage), Math.floor(Math.max(first, last - 1) / rowsPerPage)]);
      if ([...numbers].every((number) => pages.has(number))) return;
      waiting = setTimeout(() => { for (const number of numbers) fetchPage(number); }, pages.size === 0 ? 0 : 50);
    },
    /** The rank of a document among the rows that were read, or -1. */
    rankOf(documentPath) {
      for (const [number, documents] of pages) {
        const index = documents.findIndex((document) => pathOf(document.name) === documentPath);
        if (index >= 0) return number * rowsPerPage + index;
      }
      return -1;
    },
    /** Asks the server for the rank of a document. */
    async findRank(documentPath) {
      const value = { referenceValue: resourceName(documentPath) };
      return countDocuments(parent, { from, where: {
        fieldFilter: { field: { fieldPath: "__name__" }, op: "LESS_THAN", value } } });
    },
    /** Applies a change that a commit made. Returns whether rows were added or removed. */
    apply({ path: documentPath, before, after }) {
      changed.set(documentPath, Date.now());
      if (before && after) {
        for (const documents of pages.values()) {
          const index = documents.findIndex((document) => pathOf(document.name) === documentPath);
          if (index >= 0) { documents[index] = after; bump(); }
        }
        return false;
      }
      return true;
    },
    /** Whether a document changed in the last moment. */
    isChanged(documentPath) { return Date.now() - (changed.get(documentPath) ?? 0) < 1500; },
    end() { stop.abort(); clearTimeout(waiting); },
  };
}
