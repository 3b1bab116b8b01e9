// Reads files of documents: trees with `$collections`, and lines of `{"path": …, "fields": …}`.
import { markNumbers } from "../api/values.js";

/** Returns `[{ path, fields }]`. `base` is the prefix of references. Throws an error with a sentence. */
export function readTree(text, base, parseFields) {
  const trimmed = text.trim();
  if (/^\{"path"\s*:/.test(trimmed)) {
    return trimmed.split("\n").filter((line) => line.trim() !== "").map((line, index) => {
      let entry;
      try { entry = JSON.parse(markNumbers(line)); } catch { throw new Error(`line ${index + 1} is not valid JSON`); }
      return { path: entry.path, fields: parseFields(JSON.stringify(entry.fields ?? {}), base) };
    });
  }
  let tree;
  try { tree = JSON.parse(markNumbers(trimmed)); } catch (error) { throw new Error(`the file is not valid JSON: ${error.message}`); }
  const names = tree?.$collections;
  if (!Array.isArray(names)) {
    throw new Error('the first member must be "$collections": ["users", "users/*/orders"], which says which maps are collections');
  }
  const patterns = new Set(names);
  const found = [];
  walk(tree, "", "");
  return found;

  function walk(node, path, pattern) {
    for (const [id, documents] of Object.entries(node)) {
      const own = pattern === "" ? id : `${pattern}/*/${id}`;
      if (id === "$collections" || !patterns.has(own)) continue;
      for (const [key, fields] of Object.entries(documents)) {
        const target = `${path === "" ? "" : `${path}/`}${id}/${key}`;
        const kept = { ...fields };
        for (const name of Object.keys(fields)) if (patterns.has(`${own}/*/${name}`)) delete kept[name];
        found.push({ path: target, fields: parseFields(JSON.stringify(kept), base) });
        walk(fields, target, own);
      }
    }
  }
}
