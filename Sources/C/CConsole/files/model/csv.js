// CSV with a header row, by the rules of `hearth import`: each row becomes a document, and each column a field.
import { parseNotation } from "../api/values.js";

const delimiterNames = { ",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars" };
const delimiters = Object.keys(delimiterNames);
const columnsMax = 4096;
/** The part of a file that shows its delimiter. */
const inspectedCount = 65_536;

const synonyms = { text: "string", integer: "int", float: "double", boolean: "bool", date: "timestamp", datetime: "timestamp", reference: "ref", geopoint: "geo" };
const typeNames = ["string", "int", "double", "number", "bool", "timestamp", "bytes", "ref", "geo", "json"];
/** The names of columns with IDs, in the order of preference. */
const idNames = ["__id__", "_id", "id"];

const failure = (line, message) => new Error(`line ${line}: ${message}`);

/** Returns the text of a file. Throws an error with a sentence. */
export function csvText(bytes) {
  const view = new Uint8Array(bytes);
  if ((view[0] === 0xff && view[1] === 0xfe) || (view[0] === 0xfe && view[1] === 0xff)) throw new Error("the file is UTF-16; save it as UTF-8");
  try { return new TextDecoder("utf-8", { fatal: true }).decode(view); } catch { throw new Error("the file is not valid UTF-8; save it as UTF-8"); }
}

/** How often each delimiter is outside of quotes in the first line that is not empty, and in the next one. */
function delimiterCounts(text) {
  const lines = [];
  let counts = delimiters.map(() => 0);
  let isEmpty = true;
  let isQuoted = false;
  for (const sign of text.slice(0, inspectedCount)) {
    if (!isQuoted && (sign === "\n" || sign === "\r")) {
      if (!isEmpty) lines.push(counts);
      if (lines.length === 2) break;
      counts = delimiters.map(() => 0);
      isEmpty = true;
      continue;
    }
    isEmpty = false;
    if (sign === '"') isQuoted = !isQuoted;
    const at = isQuoted ? -1 : delimiters.indexOf(sign);
    if (at >= 0) counts[at] += 1;
  }
  if (!isEmpty && lines.length < 2) lines.push(counts);
  return { header: lines[0] ?? counts, row: lines[1] };
}

/** The character between the cells of a file. */
function delimiterOf(text, name) {
  if (/\.tsv$/i.test(name)) return "\t";
  const { header, row } = delimiterCounts(text);
  const found = delimiters.map((_, index) => index).filter((index) => header[index] > 0);
  if (found.length <= 1) return delimiters[found[0] ?? 0];
  const fitting = found.filter((index) => header[index] === row?.[index]);
  if (fitting.length === 1) return delimiters[fitting[0]];
  if (found[0] === 0 && fitting.length === 0) return ",";
  const names = found.map((index) => delimiterNames[delimiters[index]]);
  throw failure(1, `${found[0] === 0 ? "the header has " : "the header has no comma, but "}${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);
}

/** The rows of a text: `{ line, cells: [{ text, isQuoted }] }`. Empty lines are left out. */
function rowsOfText(text, delimiter) {
  const rows = [];
  let at = 0;
  let line = 1;
  while (at < text.length) {
    const row = { line, cells: [] };
    for (let isMore = true; isMore;) {
      if (row.cells.length === columnsMax) throw failure(row.line, `a row has more than ${columnsMax} cells`);
      const cellLine = line;
      const cell = { text: "", isQuoted: text[at] === '"' };
      if (cell.isQuoted) {
        at += 1;
        for (;;) {
          const end = text.indexOf('"', at);
          if (end < 0) throw failure(cellLine, "the cell's closing quote is missing; the file may be cut short");
          const part = text.slice(at, end);
          cell.text += part;
          for (let place = part.indexOf("\n"); place >= 0; place = part.indexOf("\n", place + 1)) line += 1;
          at = end + 1;
          if (text[at] !== '"') break;
          cell.text += '"';
          at += 1;
        }
      } else {
        const start = at;
        while (at < text.length && text[at] !== delimiter && text[at] !== "\n" && text[at] !== "\r") at += 1;
        cell.text = text.slice(start, at);
      }
      row.cells.push(cell);
      isMore = false;
      if (at >= text.length) break;
      if (text[at] === delimiter) { at += 1; isMore = true; } else if (text[at] === "\n" || text[at] === "\r") {
        at += text[at] === "\r" && text[at + 1] === "\n" ? 2 : 1;
        line += 1;
      } else {
        throw failure(cellLine, "after the closing quote of a cell, the delimiter or a line break must follow; write a quote in a cell twice");
      }
    }
    const [first] = row.cells;
    if (row.cells.length > 1 || first.text !== "" || first.isQuoted) rows.push(row);
  }
  return rows;
}

const fits64Bits = (text) => { const number = BigInt(text); return number <= 9223372036854775807n && number >= -9223372036854775808n; };
const isWhole = (text) => /^-?(0|[1-9]\d*)$/.test(text) && fits64Bits(text);
const isNumber = (text) => /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text);
const isFinite_ = (text) => isNumber(text) && Number.isFinite(Number(text));
const isTruth = (text) => /^(true|false)$/i.test(text);

/** The time of a cell in the form of the API, or `null`. */
function timeOf(text) {
  const full = /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text;
  const match = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d{1,9})?([Zz]|[+-](\d\d):(\d\d))$/.exec(full);
  if (!match) return null;
  const [, year, month, day, hour, minute, second, fraction = "", zone, zoneHour = "0", zoneMinute = "0"] = match;
  const isDay = Number(month) >= 1 && Number(month) <= 12 && Number(day) >= 1 && Number(day) <= new Date(Date.UTC(2000 + (Number(year) % 400), Number(month), 0)).getUTCDate();
  if (!isDay || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59 || Number(zoneHour) > 23 || Number(zoneMinute) > 59 || year === "0000") return null;
  return `${year}-${month}-${day}T${hour}:${minute}:${second}${fraction}${zone.toUpperCase()}`;
}

/** The narrowest type that all cells of a column have. Empty cells fit every type. */
function inferredType(rows, index) {
  const cells = rows.map((row) => row.cells[index]?.text ?? "").filter((text) => text !== "");
  if (cells.length === 0) return "string";
  if (cells.every(isWhole)) return "int";
  if (cells.every((text) => isWhole(text) || (!/^-?\d+$/.test(text) && isFinite_(text)))) return "number";
  if (cells.every(isTruth)) return "bool";
  return cells.every((text) => timeOf(text) !== null) ? "timestamp" : "string";
}

function valueOfCell(text, type, base, line) {
  const misfit = (wanted) => failure(line, `${JSON.stringify(text)} is not ${wanted}, as the column's type "${type}" demands; correct the cell, or name another type `
    + `in the header (${typeNames.join(", ")})`);
  const double = () => {
    if (["NaN", "Infinity", "-Infinity"].includes(text)) return { doubleValue: text };
    if (!isFinite_(text)) throw misfit("a number");
    return { doubleValue: Number(text) };
  };
  switch (type) {
    case "int":
      if (!isWhole(text)) throw misfit("a whole number of 64 bits");
      return { integerValue: BigInt(text).toString() };
    case "double": return double();
    case "number": return isWhole(text) ? { integerValue: BigInt(text).toString() } : double();
    case "bool":
      if (!isTruth(text)) throw misfit("true or false");
      return { booleanValue: text.toLowerCase() === "true" };
    case "timestamp": {
      const time = timeOf(text);
      if (!time) throw misfit("a time such as 2025-03-27T14:30:00Z or 2025-03-27");
      return { timestampValue: time };
    }
    case "bytes":
      if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) throw failure(line, `${JSON.stringify(text)} is not valid base64`);
      return { bytesValue: text };
    case "ref": {
      const segments = text.split("/documents/").pop().split("/");
      if (segments.length % 2 !== 0 || segments.includes("")) throw failure(line, `${JSON.stringify(text)} is not a document; write a path such as "users/u1" or a full name`);
      return { referenceValue: text.startsWith("projects/") ? text : `${base}${text}` };
    }
    case "geo": {
      const parts = text.split(",").map((part) => part.replace(/^ +| +$/g, ""));
      if (parts.length !== 2 || !parts.every(isFinite_)) throw misfit("a latitude and a longitude such as 45.46,9.19");
      return { geoPointValue: { latitude: Number(parts[0]), longitude: Number(parts[1]) } };
    }
    case "json": {
      let found;
      try { found = parseNotation(`{"value": ${text}\n}`, base); } catch { throw failure(line, `${JSON.stringify(text.slice(0, 60))} is not valid JSON`); }
      if (Object.keys(found).length !== 1) throw failure(line, "expected the end of the cell");
      return found.value;
    }
    default: return { stringValue: text };
  }
}

/**
 * The table of a file: its columns `{ name, type }`, of which `type` is "" without one in the header, and its rows. `name` is the name of the
 * file. Throws an error with a sentence.
 */
export function csvTable(text, name) {
  const delimiter = delimiterOf(text, name);
  const rows = rowsOfText(text.replace(/^\ufeff/, ""), delimiter);
  const header = rows.shift();
  if (!header) throw failure(1, "the file is empty; its first row must name the columns");
  const columns = header.cells.map(({ text: cell }, index) => {
    const colon = cell.lastIndexOf(":");
    const word = colon < 0 ? "" : cell.slice(colon + 1).toLowerCase();
    const type = typeNames.includes(word) ? word : Object.hasOwn(synonyms, word) ? synonyms[word] : "";
    const own = type ? cell.slice(0, colon) : cell;
    if (own === "") throw failure(header.line, `column ${index + 1} has no name`);
    return { name: own, type };
  });
  columns.forEach(({ name: own }, index) => {
    if (columns.findIndex((each) => each.name === own) !== index) throw failure(header.line, `two columns have the name "${own}"; rename one`);
  });
  for (const row of rows) {
    if (row.cells.length !== columns.length) {
      throw failure(row.line, `the row has ${row.cells.length} ${row.cells.length === 1 ? "cell" : "cells"}, but the header names ${columns.length}; a cell with the `
        + "delimiter or a line break needs quotes");
    }
  }
  return { delimiter, columns, rows, hasPaths: columns.some((column) => column.name === "__path__"),
    idColumn: idNames.find((each) => columns.some((column) => column.name === each)) ?? "" };
}

/** The types of the columns of a table: those of the header, else the inferred ones, or "string". */
export function csvTypes(table, isInferred) {
  return table.columns.map(({ type }, index) => type || (isInferred ? inferredType(table.rows, index) : "string"));
}

/**
 * The documents of a table, `[{ path, fields }]`. `id` is the name of the column with the IDs, or "" for random ones, which `newID()` makes.
 * `base` is the prefix of references. Throws an error with a sentence.
 */
export function csvDocuments(table, { collection, id, types, base, newID }) {
  const path = table.columns.findIndex((column) => column.name === "__path__");
  const key = id === "" ? -1 : table.columns.findIndex((column) => column.name === id);
  const known = new Map();
  return table.rows.map(({ line, cells }) => {
    const own = path >= 0 ? cells[path].text : key >= 0 ? cells[key].text : newID();
    if (own === "") throw failure(line, path >= 0 ? "the path is empty" : "the ID is empty; choose another column, or random IDs");
    const target = path >= 0 ? own.replace(/^\//, "") : `${collection}/${own}`;
    if (target.split("/").length % 2 !== 0 || target.split("/").includes("")) throw failure(line, `${JSON.stringify(target)} is not the path of a document`);
    if (path < 0 && known.has(own)) throw failure(line, `two records have the ID "${own}", the first on line ${known.get(own)}; choose another column, or random IDs`);
    known.set(own, line);
    const fields = {};
    table.columns.forEach(({ name }, index) => {
      const { text, isQuoted } = cells[index];
      if (index === path || name === "__id__" || (text === "" && (!isQuoted || types[index] !== "string"))) return;
      fields[name] = valueOfCell(text, types[index], base, line);
    });
    return { path: target, fields };
  });
}
