// Values of documents: the API's JSON, the notation of `hearth set`, texts for people, and nodes that can be edited.

/** The types in the order of menus: name, short word. */
export const types = [
  ["string", "text"], ["integer", "integer"], ["double", "double"], ["boolean", "boolean"], ["timestamp", "time"],
  ["reference", "reference"], ["geo", "place"], ["bytes", "bytes"], ["array", "list"], ["map", "map"],
  ["vector", "vector"], ["null", "null"],
];
export const shortNames = {
  string: "str", integer: "int", double: "dbl", boolean: "bool", timestamp: "time", reference: "ref", geo: "geo",
  bytes: "bytes", array: "list", map: "map", vector: "vec", null: "null", missing: "",
};

const vectorKey = "__type__";

/** The type of a value of the API. */
export function typeOf(value) {
  if (!value) return "missing";
  if ("stringValue" in value) return "string";
  if ("integerValue" in value) return "integer";
  if ("doubleValue" in value) return "double";
  if ("booleanValue" in value) return "boolean";
  if ("timestampValue" in value) return "timestamp";
  if ("referenceValue" in value) return "reference";
  if ("geoPointValue" in value) return "geo";
  if ("bytesValue" in value) return "bytes";
  if ("arrayValue" in value) return "array";
  if ("mapValue" in value) {
    return value.mapValue.fields?.[vectorKey]?.stringValue === "__vector__" ? "vector" : "map";
  }
  return "null";
}

/** The value of a field of a document, or `undefined`. A missing field can have the name of a member of every object. */
export function fieldOf(document, name) {
  const fields = document?.fields;
  return fields && Object.hasOwn(fields, name) ? fields[name] : undefined;
}

const elements = (value) => value.arrayValue?.values ?? [];
const vectorNumbers = (value) => elements(value.mapValue.fields.value ?? {}).map((each) =>
  each.doubleValue ?? each.integerValue);

/** A double as people write it: whole ones keep a point. */
export function doubleText(value) {
  if (typeof value === "string") return value;
  if (Object.is(value, -0)) return "-0.0";
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? value.toFixed(1) : String(value);
}

/** A control, bidirectional or invisible character must not change how a text looks. */
export function visible(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (character) => `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

const shortened = (text, most) => text.length <= most ? text : `${text.slice(0, most)}…`;

/** One line for a value. */
export function summary(value, most = 120) {
  switch (typeOf(value)) {
    case "missing": return "";
    case "string": return visible(shortened(value.stringValue, most)).replace(/\s+/g, " ");
    case "integer": return String(value.integerValue);
    case "double": return doubleText(value.doubleValue);
    case "boolean": return String(value.booleanValue);
    case "timestamp": return timeText(value.timestampValue);
    case "reference": return visible(shortened(value.referenceValue.split("/documents/").pop(), most));
    case "geo": return `${value.geoPointValue.latitude ?? 0}, ${value.geoPointValue.longitude ?? 0}`;
    case "bytes": return bytesText(base64Count(value.bytesValue));
    case "vector": return `vector of ${vectorNumbers(value).length}`;
    case "array": {
      const list = elements(value);
      return shortened(`[${list.slice(0, 12).map((each) => summary(each, 30)).join(", ")}${list.length > 12 ? ", …" : ""}]`,
        most);
    }
    case "map": {
      const fields = Object.entries(value.mapValue.fields ?? {});
      const shown = fields.slice(0, 8).map(([key, each]) => `${visible(key)}: ${summary(each, 24)}`);
      return shortened(`{${shown.join(", ")}${fields.length > 8 ? ", …" : ""}}`, most);
    }
    default: return "null";
  }
}

const base64Count = (text) => Math.floor((text.replace(/=+$/, "").length * 3) / 4);

/** A number of bytes for people. */
export function bytesText(count) {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = count;
  let unit = -1;
  while (value >= 1000 && unit < 3) { value /= 1000; unit += 1; }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

let numberFormat = null;
/** A number for people: 12,345.678. The browser's formats take milliseconds to load, which small whole numbers spare. */
export function numberText(value) {
  if (Number.isInteger(value) && Math.abs(value) < 1000) return String(value);
  numberFormat ??= new Intl.NumberFormat("en");
  return numberFormat.format(value);
}

/** A time of the API in the local zone, to the second; with the fraction if it has one. */
export function timeText(text) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return text;
  const two = (number) => String(number).padStart(2, "0");
  const fraction = /\.(\d+)/.exec(text)?.[0] ?? "";
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:`
    + `${two(date.getMinutes())}:${two(date.getSeconds())}${fraction}`;
}

/** How long ago a time is: "3 min ago". */
export function agoText(text) {
  const seconds = (Date.now() - new Date(text).getTime()) / 1000;
  const format = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
  for (const [unit, length] of [["year", 31557600], ["month", 2629800], ["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (Math.abs(seconds) >= length) return format.format(-Math.round(seconds / length), unit);
  }
  return Math.abs(seconds) < 5 ? "now" : format.format(-Math.round(seconds), "second");
}

/** Whether two values of the API are the same. */
export function isEqual(a, b) {
  if (a === b) return true;
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return false;
  const [keysA, keysB] = [Object.keys(a), Object.keys(b)];
  return keysA.length === keysB.length && keysA.every((key) => Object.hasOwn(b, key) && isEqual(a[key], b[key]));
}

// The notation of `hearth set`.

/** The value in the notation, as text: integers keep all their digits. */
export function notation(value, indent = "", step = "  ") {
  const inner = indent + step;
  switch (typeOf(value)) {
    case "string": return JSON.stringify(value.stringValue);
    case "integer": return String(value.integerValue);
    case "double": {
      const number = value.doubleValue;
      if (typeof number === "string") return `{"$double": ${JSON.stringify(number)}}`;
      return Number.isInteger(number) ? `{"$double": ${Object.is(number, -0) ? "-0.0" : JSON.stringify(number)}}` : JSON.stringify(number);
    }
    case "boolean": return String(value.booleanValue);
    case "timestamp": return `{"$timestamp": ${JSON.stringify(value.timestampValue)}}`;
    case "reference": return `{"$ref": ${JSON.stringify(value.referenceValue.split("/documents/").pop())}}`;
    case "geo": return `{"$geo": [${value.geoPointValue.latitude ?? 0}, ${value.geoPointValue.longitude ?? 0}]}`;
    case "bytes": return `{"$bytes": ${JSON.stringify(value.bytesValue)}}`;
    case "vector": return `{"$vector": [${vectorNumbers(value).join(", ")}]}`;
    case "array": {
      const list = elements(value).map((each) => notation(each, inner, step));
      if (list.length === 0) return "[]";
      const line = `[${list.join(", ")}]`;
      return line.length < 90 && !line.includes("\n") ? line : `[\n${inner}${list.join(`,\n${inner}`)}\n${indent}]`;
    }
    case "map": return mapNotation(value.mapValue.fields ?? {}, indent, step);
    default: return "null";
  }
}

/** Fields in the notation. */
export function mapNotation(fields, indent = "", step = "  ") {
  const inner = indent + step;
  const lines = Object.keys(fields).sort().map((key) =>
    `${JSON.stringify(key.startsWith("$") ? `$${key}` : key)}: ${notation(fields[key], inner, step)}`);
  return lines.length === 0 ? "{}" : `{\n${inner}${lines.join(`,\n${inner}`)}\n${indent}}`;
}

/** The key of a marked number. No document can contain it, because it is new in each page. */
const numberKey = `number ${crypto.getRandomValues(new Uint32Array(4)).join("")}`;

/** JSON in which numbers are objects with their text, because JSON.parse would round large integers. */
export function markNumbers(text) {
  return text.replace(/("(?:[^"\\]|\\.)*")|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g,
    (all, quoted, number) => quoted ?? `{"${numberKey}":"${number}"}`);
}

/** Reads a text in the notation as fields of the API. Throws an error with a sentence. */
export function parseNotation(text, referenceBase) {
  const tree = JSON.parse(markNumbers(text));
  if (tree === null || typeof tree !== "object" || Array.isArray(tree)) throw new Error("a document must be an object");
  return Object.fromEntries(Object.entries(tree).map(([key, each]) => [unescapedKey(key), fromTree(each)]));

  function unescapedKey(key) { return key.startsWith("$$") ? key.slice(1) : key; }

  function plainNumber(each) { return Number(each?.[numberKey] ?? each); }

  function fromTree(each) {
    if (each === null) return { nullValue: null };
    if (typeof each === "string") return { stringValue: each };
    if (typeof each === "boolean") return { booleanValue: each };
    if (Array.isArray(each)) return { arrayValue: { values: each.map(fromTree) } };
    const keys = Object.keys(each);
    const digits = each[numberKey];
    if (digits !== undefined) {
      if (/^-?\d+$/.test(digits)) return integerValue(digits);
      return doubleValue(Number(digits));
    }
    if (keys.length === 1 && keys[0].startsWith("$") && !keys[0].startsWith("$$")) {
      const inner = each[keys[0]];
      switch (keys[0]) {
        case "$timestamp": return timestampValue(inner);
        case "$ref": return { referenceValue: inner.startsWith("projects/") ? inner : `${referenceBase}${inner}` };
        case "$bytes": return { bytesValue: inner };
        case "$geo": return { geoPointValue: { latitude: plainNumber(inner[0]), longitude: plainNumber(inner[1]) } };
        case "$double":
          return typeof inner === "string" ? { doubleValue: inner } : doubleValue(plainNumber(inner));
        case "$vector": return vectorValue(inner.map(plainNumber));
        default: throw new Error(`${keys[0]} is not a type; write $$ for a key that begins with $`);
      }
    }
    const fields = Object.fromEntries(Object.entries(each).map(([key, value]) => [unescapedKey(key), fromTree(value)]));
    return { mapValue: { fields } };
  }
}

/** A double of the API. JSON.stringify would write -0 as 0. */
export function doubleValue(number) { return { doubleValue: Object.is(number, -0) ? "-0.0" : number }; }

export function vectorValue(numbers) {
  return { mapValue: { fields: {
    [vectorKey]: { stringValue: "__vector__" },
    value: { arrayValue: { values: numbers.map((number) => ({ doubleValue: number })) } },
  } } };
}

export function integerValue(text) {
  const trimmed = text.trim();
  if (!/^[+-]?\d+$/.test(trimmed)) throw new Error("write a whole number, such as 42");
  const number = BigInt(trimmed);
  if (number > 9223372036854775807n || number < -9223372036854775808n) {
    throw new Error("the number does not fit 64 bits; choose double");
  }
  return { integerValue: number.toString() };
}

export function timestampValue(text) {
  const trimmed = text.trim();
  const full = /^\d{4}-\d\d-\d\d$/.test(trimmed) ? `${trimmed}T00:00:00Z` : trimmed.replace(" ", "T");
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?$/.exec(full);
  if (!match || Number.isNaN(Date.parse(match[1].slice(0, 19)))) {
    throw new Error("write a time, such as 2025-03-27T14:30:00Z");
  }
  return { timestampValue: match[2] ? full : `${full}Z` };
}
