// A query as the builder edits it, as the API takes it, and as code.
import { fieldPath } from "./nodes.js";
import { lastSegment, parentOf } from "../api/client.js";
import { notation, parseNotation } from "../api/values.js";
import { authorizationOption, quotedForShell, shellWord, urlPath } from "./shell.js";

/** The operators: the text of the builder, the API's name, whether they compare with a list, and need no value. */
export const operators = [
  ["==", "EQUAL"], ["!=", "NOT_EQUAL"], ["<", "LESS_THAN"], ["<=", "LESS_THAN_OR_EQUAL"], [">", "GREATER_THAN"],
  [">=", "GREATER_THAN_OR_EQUAL"], ["array-contains", "ARRAY_CONTAINS"], ["in", "IN"], ["not-in", "NOT_IN"],
  ["array-contains-any", "ARRAY_CONTAINS_ANY"],
];
const takesList = new Set(["in", "not-in", "array-contains-any"]);

/** An empty query. */
export function emptyQuery(path = "") {
  return { path, isGroup: false, where: [], order: [], limit: "", aggregate: "", field: "" };
}

/** Reads a query from JSON, which may come from a link of a stranger. Members of another type become empty. Throws if it is not JSON. */
export function queryFrom(text) {
  const found = JSON.parse(text) ?? {};
  const string = (value) => typeof value === "string" || typeof value === "number" ? String(value) : "";
  const list = (value, make) => Array.isArray(value) ? value.filter((each) => each && typeof each === "object").map(make) : [];
  return { path: string(found.path), isGroup: found.isGroup === true,
    where: list(found.where, (each) => ({ field: string(each.field), op: operators.some(([op]) => op === each.op) ? each.op : "==", value: string(each.value) })),
    order: list(found.order, (each) => ({ field: string(each.field), isDescending: each.isDescending === true })),
    limit: string(found.limit), aggregate: ["count", "sum", "avg"].includes(found.aggregate) ? found.aggregate : "", field: string(found.field) };
}

/** Reads the value of a condition: the notation of `hearth set`, or a bare word as text. */
export function conditionValue(text, root) {
  const trimmed = text.trim();
  if (trimmed === "") return { stringValue: "" };
  if (/^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d)?)?$/.test(trimmed)) {
    return parseNotation(`{"v": {"$timestamp": ${JSON.stringify(trimmed.includes("T") ? trimmed : `${trimmed}T00:00:00Z`)}}}`, "").v;
  }
  try { return parseNotation(`{"v": ${trimmed}}`, `${root}/documents/`).v; } catch { return { stringValue: trimmed }; }
}

/** The API's query. Throws an error with a sentence. */
export function structuredQuery(query, root) {
  const result = { from: [{ collectionId: lastSegment(query.path) || query.path }] };
  if (query.isGroup) result.from[0].allDescendants = true;
  const filters = query.where.filter((each) => each.field.trim() !== "").map((each) => {
    const path = { fieldPath: apiPath(each.field) };
    const value = conditionValue(each.value, root);
    if ("nullValue" in value && (each.op === "==" || each.op === "!=")) {
      return { unaryFilter: { field: path, op: each.op === "==" ? "IS_NULL" : "IS_NOT_NULL" } };
    }
    if (takesList.has(each.op) && !value.arrayValue) throw new Error(`${each.op} needs a list, such as ["a", "b"]`);
    return { fieldFilter: { field: path, op: operators.find(([text]) => text === each.op)[1], value } };
  });
  if (filters.length === 1) result.where = filters[0];
  if (filters.length > 1) result.where = { compositeFilter: { op: "AND", filters } };
  const order = query.order.filter((each) => each.field.trim() !== "");
  if (order.length > 0) {
    result.orderBy = order.map((each) => ({ field: { fieldPath: apiPath(each.field) },
      direction: each.isDescending ? "DESCENDING" : "ASCENDING" }));
  }
  if (String(query.limit).trim() !== "") {
    if (!/^\d+$/.test(String(query.limit).trim())) throw new Error("the limit must be a whole number");
    result.limit = Number(query.limit);
  }
  return result;
}

/** A dotted path, whose names are quoted where the API needs it. */
export function apiPath(text) {
  const trimmed = text.trim();
  if (trimmed.startsWith("`") || trimmed === "__name__") return trimmed;
  return trimmed.split(".").map(fieldPath).join(".");
}

/** The document below which a query runs, or "". */
export const queryParent = (query) => query.isGroup ? "" : parentOf(query.path);

/** The aggregation of a query for the API, or `null`. */
export function aggregation(query) {
  if (query.aggregate === "count") return { alias: "count", count: {} };
  if (query.aggregate === "sum" || query.aggregate === "avg") {
    if (query.field.trim() === "") throw new Error(`${query.aggregate} needs a field`);
    return { alias: query.aggregate, [query.aggregate]: { field: { fieldPath: apiPath(query.field) } } };
  }
  return null;
}

/** The composite index that Firestore in production would want, or `null` if single fields are enough. */
export function neededIndex(query) {
  const equal = query.where.filter((each) => ["==", "in"].includes(each.op) && each.field.trim());
  const contains = query.where.filter((each) => each.op.startsWith("array-contains") && each.field.trim());
  const ranges = query.where.filter((each) => !equal.includes(each) && !contains.includes(each) && each.field.trim());
  const order = query.order.filter((each) => each.field.trim());
  const fields = [];
  const add = (field) => { if (!fields.some((each) => each.fieldPath === field.fieldPath)) fields.push(field); };
  for (const each of equal) add({ fieldPath: apiPath(each.field), order: "ASCENDING" });
  for (const each of contains) add({ fieldPath: apiPath(each.field), arrayConfig: "CONTAINS" });
  for (const each of order) add({ fieldPath: apiPath(each.field), order: each.isDescending ? "DESCENDING" : "ASCENDING" });
  for (const each of ranges) add({ fieldPath: apiPath(each.field), order: "ASCENDING" });
  const isMerge = ranges.length === 0 && order.length === 0 && contains.length === 0;
  const only = fields.filter((field) => field.fieldPath !== "__name__");
  if (only.length < 2 || isMerge) return null;
  return { collectionGroup: lastSegment(query.path) || query.path, queryScope: query.isGroup ? "COLLECTION_GROUP" : "COLLECTION",
    fields: only };
}

const quoted = (text) => JSON.stringify(text);
/** The number of a limit, which is a text as it was typed. */
const limitOf = (text) => /^\d+$/.test(text.trim()) ? text.trim() : "0";

function literal(value, language) {
  const inner = (each) => literal(each, language);
  if ("stringValue" in value) return quoted(value.stringValue);
  if ("integerValue" in value) return value.integerValue;
  if ("doubleValue" in value) return String(value.doubleValue);
  if ("booleanValue" in value) return language === "python" ? (value.booleanValue ? "True" : "False") : String(value.booleanValue);
  if ("nullValue" in value) return { python: "None", swift: "nil" }[language] ?? "null";
  if ("timestampValue" in value) {
    const text = quoted(value.timestampValue);
    return { python: `datetime.fromisoformat(${text})`, swift: `try Date(${text}, strategy: .iso8601)` }[language] ?? `new Date(${text})`;
  }
  if ("referenceValue" in value) {
    const path = quoted(value.referenceValue.split("/documents/").pop());
    return { python: `db.document(${path})`, swift: `hearth.document(${path})` }[language] ?? `doc(db, ${path})`;
  }
  if ("arrayValue" in value) return `[${(value.arrayValue.values ?? []).map(inner).join(", ")}]`;
  return notation(value);
}

/** The query as code. `context` has `root`, `origin`, `project`, `host`. */
export function codeOf(query, language, context) {
  const where = query.where.filter((each) => each.field.trim()).map((each) => ({ ...each, path: apiPath(each.field),
    value: conditionValue(each.value, context.root) }));
  const order = query.order.filter((each) => each.field.trim());
  const parent = query.path || "collection";
  switch (language) {
    case "hearth": {
      const parts = ["hearth query", query.isGroup ? `${shellWord(lastSegment(parent) || parent)} --group` : shellWord(parent)];
      for (const each of where) {
        const op = each.op.replace("array-", "");
        parts.push(`--where ${quotedForShell(`${each.field.trim()} ${op} ${notation(each.value)}`)}`);
      }
      for (const each of order) parts.push(`--order ${shellWord(each.field.trim() + (each.isDescending ? ":desc" : ""))}`);
      if (query.limit) parts.push(`--limit ${shellWord(query.limit)}`);
      if (query.aggregate === "count") parts.push("--count");
      else if (query.aggregate) parts.push(`--${query.aggregate} ${shellWord(query.field)}`);
      return parts.join(" ");
    }
    case "curl": {
      let structured;
      try { structured = structuredQuery(query, context.root); } catch (error) { return error.message; }
      const aggregate = query.aggregate ? aggregation(query) : null;
      const body = aggregate ? { structuredAggregationQuery: { structuredQuery: structured, aggregations: [aggregate] } }
        : { structuredQuery: structured };
      const base = query.isGroup ? "" : parentOf(query.path);
      const url = `${context.origin}/v1/${urlPath(context.root)}/documents${base ? `/${urlPath(base)}` : ""}:${aggregate ? "runAggregationQuery"
        : "runQuery"}`;
      return `curl -X POST ${quotedForShell(url)} \\\n  ${authorizationOption()} -H 'Content-Type: application/json' \\\n  -d ${
        quotedForShell(JSON.stringify(body, null, 2))}`;
    }
    case "javascript": {
      const source = query.isGroup ? `collectionGroup(db, ${quoted(lastSegment(parent) || parent)})` : `collection(db, ${quoted(parent)})`;
      const parts = where.map((each) => `where(${quoted(each.field.trim())}, ${quoted(each.op)}, ${literal(each.value, language)})`);
      for (const each of order) parts.push(`orderBy(${quoted(each.field.trim())}${each.isDescending ? ', "desc"' : ""})`);
      if (query.limit) parts.push(`limit(${limitOf(query.limit)})`);
      const built = parts.length === 0 ? source : `query(\n  ${[source, ...parts].join(",\n  ")}\n)`;
      if (query.aggregate === "count") return `const snapshot = await getCountFromServer(${built});\nconsole.log(snapshot.data().count);`;
      if (query.aggregate) {
        const name = query.aggregate === "avg" ? "average" : "sum";
        return `const snapshot = await getAggregateFromServer(${built}, { result: ${name}(${quoted(query.field)}) });\n`
          + "console.log(snapshot.data().result);";
      }
      return `const snapshot = await getDocs(${built});\nfor (const doc of snapshot.docs) console.log(doc.id, doc.data());`;
    }
    case "python": {
      const times = where.some((each) => "timestampValue" in each.value) ? "from datetime import datetime\n" : "";
      const filters = where.length > 0 ? "from google.cloud.firestore_v1.base_query import FieldFilter\n" : "";
      const lines = [query.isGroup ? `db.collection_group(${quoted(lastSegment(parent) || parent)})` : `db.collection(${quoted(parent)})`];
      for (const each of where) {
        lines.push(`.where(filter=FieldFilter(${quoted(each.field.trim())}, ${quoted(each.op.replaceAll("-", "_"))}, ${literal(each.value, language)}))`);
      }
      for (const each of order) {
        lines.push(`.order_by(${quoted(each.field.trim())}${each.isDescending ? ", direction=firestore.Query.DESCENDING" : ""})`);
      }
      if (query.limit) lines.push(`.limit(${limitOf(query.limit)})`);
      const built = lines.length === 1 ? lines[0] : `(\n    ${lines.join("\n    ")}\n)`;
      const end = query.aggregate === "count" ? "print(query.count().get()[0][0].value)"
        : query.aggregate ? `print(query.${query.aggregate}(${quoted(query.field)}).get()[0][0].value)`
          : "for document in query.stream():\n    print(document.id, document.to_dict())";
      return `${times}from google.cloud import firestore\n${filters}\ndb = firestore.Client(project=${quoted(context.project)})\nquery = ${built}\n${end}`;
    }
    default: {
      const names = { "==": "equal", "!=": "notEqual", "<": "lessThan", "<=": "lessThanOrEqual", ">": "greaterThan",
        ">=": "greaterThanOrEqual", "array-contains": "arrayContains", in: "isIn", "not-in": "isNotIn", "array-contains-any": "arrayContainsAny" };
      const lines = [query.isGroup ? `hearth.collectionGroup(${quoted(lastSegment(parent) || parent)})` : `hearth.collection(${quoted(parent)})`];
      for (const each of where) lines.push(`.where(${quoted(each.field.trim())}, .${names[each.op]}, ${literal(each.value, "swift")})`);
      for (const each of order) lines.push(`.order(by: ${quoted(each.field.trim())}${each.isDescending ? ", descending: true" : ""})`);
      if (query.limit) lines.push(`.limit(to: ${limitOf(query.limit)})`);
      const built = lines.join("\n  ");
      if (query.aggregate === "count") return `let count = try await ${built}\n  .count()`;
      if (query.aggregate) return `let result = try await ${built}\n  .${query.aggregate === "avg" ? "average" : "sum"}(of: ${quoted(query.field)})`;
      return `let documents = try await ${built}\n  .get()`;
    }
  }
}
