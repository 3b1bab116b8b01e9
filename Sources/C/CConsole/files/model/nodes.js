// A document that is being edited: a tree of nodes with texts as they are typed, checked when they become values.
import { doubleText, doubleValue, integerValue, isEqual, timestampValue, typeOf, vectorValue } from "../api/values.js";

let lastID = 0;

/** Makes a node of a value: `{ id, key, type, text, items }`. */
export function nodeOf(key, value) {
  lastID += 1;
  const type = typeOf(value);
  const made = { id: lastID, key, type, text: "", items: [], isOpen: false };
  switch (type) {
    case "string": made.text = value.stringValue; break;
    case "integer": made.text = String(value.integerValue); break;
    case "double": made.text = doubleText(value.doubleValue); break;
    case "boolean": made.text = String(value.booleanValue); break;
    case "timestamp": made.text = value.timestampValue; break;
    case "reference": made.text = value.referenceValue.split("/documents/").pop(); made.base = value.referenceValue; break;
    case "geo": made.text = `${value.geoPointValue.latitude ?? 0}, ${value.geoPointValue.longitude ?? 0}`; break;
    case "bytes": made.text = value.bytesValue; break;
    case "vector":
      made.text = (value.mapValue.fields.value?.arrayValue?.values ?? []).map((each) =>
        each.doubleValue ?? each.integerValue).join(", ");
      break;
    case "array": made.items = (value.arrayValue.values ?? []).map((each, index) => nodeOf(String(index), each)); break;
    case "map": made.items = nodesOf(value.mapValue.fields ?? {}); break;
    default: break;
  }
  return made;
}

/** The nodes of fields, sorted by name as the database sorts them. */
export function nodesOf(fields) {
  return Object.keys(fields).sort().map((key) => nodeOf(key, fields[key]));
}

function double(text) {
  const trimmed = text.trim();
  if (["NaN", "Infinity", "-Infinity"].includes(trimmed)) return { doubleValue: trimmed };
  const number = Number(trimmed);
  if (trimmed === "" || Number.isNaN(number)) throw new Error("write a number, NaN or Infinity");
  return doubleValue(number);
}

function geo(text) {
  const parts = text.split(",").map((part) => part.trim());
  const [latitude, longitude] = parts.map(Number);
  if (parts.length !== 2 || parts.includes("") || !(Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180)) {
    throw new Error("write latitude, longitude, such as 45.46, 9.19");
  }
  return { geoPointValue: { latitude, longitude } };
}

function reference(node, root) {
  const path = node.text.trim();
  if (node.base && node.base.split("/documents/").pop() === path) return { referenceValue: node.base };
  if (path.startsWith("projects/")) return { referenceValue: path };
  const segments = path.split("/");
  if (segments.length % 2 !== 0 || segments.includes("")) throw new Error("write the path of a document: users/ann");
  return { referenceValue: `${root}/documents/${path}` };
}

function bytes(text) {
  const trimmed = text.trim().replaceAll("-", "+").replaceAll("_", "/");
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(trimmed) || trimmed.replace(/=+$/, "").length % 4 === 1) {
    throw new Error("write bytes in base64");
  }
  return { bytesValue: trimmed };
}

/** The value of a node. `root` is the name of the database. Throws an error with a sentence. */
export function valueOf(node, root) {
  switch (node.type) {
    case "string": return { stringValue: node.text };
    case "integer": return integerValue(node.text);
    case "double": return double(node.text);
    case "boolean": return { booleanValue: node.text === "true" };
    case "timestamp": return timestampValue(node.text);
    case "reference": return reference(node, root);
    case "geo": return geo(node.text);
    case "bytes": return bytes(node.text);
    case "vector": {
      const numbers = node.text.split(",").map((part) => Number(part.trim() || "x"));
      if (node.text.trim() === "" || numbers.some(Number.isNaN)) throw new Error("write numbers with commas: 1, 0.5");
      return vectorValue(numbers);
    }
    case "array": return { arrayValue: { values: node.items.map((item) => valueOf(item, root)) } };
    case "map": return { mapValue: { fields: fieldsOf(node.items, root) } };
    default: return { nullValue: null };
  }
}

/** The fields of nodes. Throws an error with a sentence. */
export function fieldsOf(nodes, root) {
  const fields = {};
  for (const node of nodes) {
    if (node.key === "") throw new Error("a field needs a name");
    if (Object.hasOwn(fields, node.key)) throw new Error(`the field ${node.key} is there twice`);
    fields[node.key] = valueOf(node, root);
  }
  return fields;
}

/** What is wrong with a node itself, or "". */
export function problemOf(node, root) {
  if (node.type === "array" || node.type === "map") return "";
  try { valueOf(node, root); } catch (error) { return error.message; }
  return "";
}

/** Changes the type of a node and keeps its text if that makes sense. */
export function changeType(node, type, now) {
  const before = node.type;
  node.type = type;
  if (type === "map" || type === "array") {
    if (before !== "map" && before !== "array") node.items = [];
    node.items.forEach((item, index) => { item.key = type === "array" ? String(index) : item.key; });
    node.isOpen = true;
    return;
  }
  if (type === "integer" && before === "double") node.text = node.text.replace(/\.0+$/, "");
  if (type === "double" && before === "integer") node.text = `${node.text}.0`;
  if (type === "boolean") node.text = node.text === "true" ? "true" : "false";
  if (type === "timestamp" && !/^\d{4}-/.test(node.text)) node.text = now;
}

/** The field paths that differ between two documents: the fields of the first level. */
export function changedFields(before, after) {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].filter((key) => !isEqual(before[key], after[key])).sort();
}

/** A name as one segment of a field path. */
export function fieldPath(name) {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `\`${name.replaceAll("\\", "\\\\").replaceAll("`", "\\`")}\``;
}
