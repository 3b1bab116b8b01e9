// Requests to the server.
import { signal } from "../core/signals.js";
import { moment, place } from "../core/address.js";
import { foreignReason, isProduction, lockReason, ownToken, setSession, withProject } from "./session.js";

/** The user whose rights the data screens use, or `null` for the administrator. */
export const viewer = signal(null);
/** Whether the last request reached the server. */
export const isOnline = signal(true);

/** An error of the server, or of the way to it. */
class RequestError extends Error {
  constructor(message, status, code) {
    super(message);
    this.status = status;
    this.code = code;
  }

  get isDenied() { return this.status === 403; }
}

/** The text of the response to a request that early.js has sent, once, or `null`. */
async function takeEarly(key) {
  const found = early.get(key);
  early.delete(key);
  return viewer.peek() || moment.peek() ? null : found;
}

/** The member that makes a read show the chosen moment. */
const atMoment = () => moment.peek() ? { readTime: moment.peek() } : {};
const isWrite = (method, path) => path.includes("/documents") && (method === "PATCH" || method === "DELETE" || path.endsWith(":commit"));

/**
 * Sends a request and returns the response. Options: `body`, `headers`, `signal`, `asViewer`, and `isPresent` for a
 * write that is allowed while the page shows the past.
 */
export async function send(method, path, { body, headers, signal: stop, asViewer, isRaw, isPresent } = {}) {
  if (moment.peek() && !isPresent && isWrite(method, path)) {
    throw new RequestError("The past cannot be changed. Go back to now to write.", 0, "FAILED_PRECONDITION");
  }
  const user = asViewer ? viewer.peek() : null;
  const token = user ? user.token : ownToken();
  const foreign = foreignReason(path);
  if (foreign) throw new RequestError(foreign, 0, "PERMISSION_DENIED");
  const locked = lockReason(method, path);
  if (locked) throw new RequestError(locked, 0, "LOCKED");
  let response;
  try {
    response = await fetch(withProject(path), {
      method, signal: stop, credentials: "omit", cache: "no-store",
      headers: {
        ...(token ? { Authorization: `Bearer ${token}` } : {}),
        ...(body !== undefined && !isRaw ? { "Content-Type": "application/json" } : {}), ...headers,
      },
      body: body === undefined ? undefined : isRaw ? body : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    isOnline.set(false);
    throw new RequestError("The server does not respond. Is it still running?", 0, "UNAVAILABLE");
  }
  isOnline.set(true);
  if (response.ok) return response;
  const text = await response.text();
  let found;
  try {
    const parsed = JSON.parse(text);
    found = (Array.isArray(parsed) ? parsed[0] : parsed).error;
  } catch { /* Not JSON. */ }
  if (isProduction && response.status === 401 && !user && token === ownToken()) setSession(null, token ? "Your session has ended. Sign in again." : "");
  throw new RequestError(found?.message ?? (text.trim() || `Status ${response.status}`), response.status,
    found?.status ?? "");
}

/** Sends a request and returns its JSON. */
export async function call(method, path, options) {
  const key = `${method} ${path}`;
  const ahead = typeof early !== "undefined" && early.has(key) ? await takeEarly(key) : null;
  const text = ahead ?? await (await send(method, path, options)).text();
  return text === "" ? {} : JSON.parse(text);
}

/** The beginning of URLs about a project. */
export function projectURL(prefix) { return `${prefix}/projects/${segmentOf(place.peek().project)}`; }

/** The name of the database that is shown. */
export function databaseName() {
  const { project, database } = place();
  return `projects/${project}/databases/${database}`;
}

/** A part of a path for a URL. Browsers would resolve one or two dots, so that the URL would lead elsewhere. */
function segmentOf(text) {
  if (text === "." || text === ".." || text === "") throw new RequestError("No document or collection can have this name.", 400, "INVALID_ARGUMENT");
  return encodeURIComponent(text);
}

const encodedPath = (path) => path.split("/").map(segmentOf).join("/");

/** The URL of a path below the documents of a database. */
export function documentsURL(path = "", verb = "") {
  const { project, database } = place.peek();
  const base = `/v1/projects/${segmentOf(project)}/databases/${segmentOf(database)}/documents`;
  return base + (path ? `/${encodedPath(path)}` : "") + verb;
}

/** The URL of a call of Hearth's own about the database. */
export function hearthURL(rest) {
  const { project, database } = place.peek();
  return `/hearth/v1/projects/${segmentOf(project)}/databases/${segmentOf(database)}/${rest}`;
}

/** The full name of a document. */
export function resourceName(path) {
  const { project, database } = place.peek();
  return `projects/${project}/databases/${database}/documents/${path}`;
}

/** The path of a document below its database. */
export function pathOf(name) { return name.split("/documents/").slice(1).join("/documents/"); }

export function lastSegment(path) { return path.slice(path.lastIndexOf("/") + 1); }
export function parentOf(path) { return path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : ""; }

/** All collections directly below a document, or below the database for "". */
export async function listCollections(path, stop) {
  const ids = [];
  let pageToken;
  do {
    const page = await call("POST", documentsURL(path, ":listCollectionIds"),
      { body: { pageSize: 1000, pageToken, ...atMoment() }, signal: stop });
    ids.push(...(page.collectionIds ?? []));
    pageToken = page.nextPageToken;
  } while (pageToken && ids.length < 20000);
  return ids;
}

/** A page of a collection, with the ids that have collections below but no document. */
export function listDocuments(path, { pageSize = 100, pageToken, mask = [], showMissing = true } = {}, stop) {
  const query = new URLSearchParams({ pageSize });
  if (showMissing && !viewer.peek()) query.set("showMissing", "true");
  if (pageToken) query.set("pageToken", pageToken);
  if (moment.peek()) query.set("readTime", moment.peek());
  for (const field of mask) query.append("mask.fieldPaths", field);
  return call("GET", `${documentsURL(path)}?${query}`, { signal: stop, asViewer: true });
}

/** Returns a document, or `null` if it does not exist. A batch reports that without an error in the browser's log. */
export async function getDocument(path, stop) {
  const parts = await call("POST", documentsURL("", ":batchGet"),
    { body: { documents: [resourceName(path)], ...atMoment() }, signal: stop, asViewer: true });
  return parts.find((part) => part.found)?.found ?? null;
}

/** The time of the server at which a read now shows the database. */
export async function readTimeNow() {
  const parts = await call("POST", documentsURL("", ":batchGet"), { body: { documents: [resourceName("_/_")] } });
  return parts.find((part) => part.readTime)?.readTime ?? "";
}

/** Returns the documents at paths that exist, in the order of the paths. */
export async function getDocuments(paths) {
  const found = new Map();
  for (let start = 0; start < paths.length; start += 300) {
    const parts = await call("POST", documentsURL("", ":batchGet"),
      { body: { documents: paths.slice(start, start + 300).map(resourceName), ...atMoment() }, asViewer: true });
    for (const part of parts) if (part.found) found.set(pathOf(part.found.name), part.found);
  }
  return paths.map((path) => found.get(path)).filter(Boolean);
}

/** The names of the first documents of a collection that meet a filter. */
export async function documentNames(path, where, limit) {
  const structured = { from: [{ collectionId: lastSegment(path) }], select: { fields: [{ fieldPath: "__name__" }] }, limit,
    orderBy: [{ field: { fieldPath: "__name__" } }], ...(where ? { where } : {}) };
  return (await runQuery(parentOf(path), structured)).filter((part) => part.document).map((part) => part.document.name);
}

/** The parts of the response to a query below a document. */
export function runQuery(parent, structuredQuery, { explain = false, signal: stop } = {}) {
  const body = { structuredQuery, ...atMoment() };
  if (explain) body.explainOptions = { analyze: true };
  return call("POST", documentsURL(parent, ":runQuery"), { body, signal: stop, asViewer: true });
}

/** The messages of a pipeline's response, the last one with the plan. */
export function runPipeline(stages, stop) {
  const options = { explain_options: { mapValue: { fields: { mode: { stringValue: "analyze" }, output_format: { stringValue: "text" } } } } };
  return call("POST", documentsURL("", ":executePipeline"),
    { body: { structuredPipeline: { pipeline: { stages }, options }, ...atMoment() }, signal: stop, asViewer: true });
}

/** The results of aggregations by their aliases. */
export async function runAggregation(parent, structuredQuery, aggregations, { signal: stop, asViewer = true } = {}) {
  const body = { structuredAggregationQuery: { structuredQuery, aggregations }, ...atMoment() };
  const parts = await call("POST", documentsURL(parent, ":runAggregationQuery"), { body, signal: stop, asViewer });
  return parts.find((part) => part.result)?.result.aggregateFields ?? {};
}

/** The number of documents that a query finds. */
export async function countDocuments(parent, structuredQuery, options) {
  const found = await runAggregation(parent, structuredQuery, [{ alias: "n", count: {} }], options);
  return Number(found.n.integerValue);
}

/** The number of documents at a path and below it. Deleting the path would delete them. */
export async function countBelow(path) {
  const isCollection = path.split("/").length % 2 === 1;
  const name = (text) => ({ referenceValue: resourceName(text) });
  const compare = (op, value) => ({ fieldFilter: { field: { fieldPath: "__name__" }, op, value } });
  const from = [{ allDescendants: true }];
  if (!isCollection) {
    const below = await countDocuments(path, { from }, { asViewer: false });
    return below + (await getDocument(path) ? 1 : 0);
  }
  // Every document below the collection is between these names: no id sorts before the first one, and the id of the
  // collection with a zero byte is the next collection.
  const parent = parentOf(path);
  const filters = [compare("GREATER_THAN_OR_EQUAL", name(`${path}/ `)), compare("LESS_THAN", name(`${path}\u0001/ `))];
  const all = await countDocuments(parent, { from, where: { compositeFilter: { op: "AND", filters } } },
    { asViewer: false });
  return all;
}

/** Applies writes atomically. `isPresent` allows it while the page shows the past. */
export function commit(writes, { isPresent = false } = {}) {
  return call("POST", documentsURL("", ":commit"), { body: { writes }, asViewer: true, isPresent });
}

/** The writes of one commit. */
export const writesPerCommit = 400;
/** Applies any number of writes in commits of 400. Returns their results, also those before a failure by `onResults`. */
export async function commitAll(writes, { isPresent = false, onResults = () => {}, stop } = {}) {
  for (let start = 0; start < writes.length && !stop?.aborted; start += writesPerCommit) {
    const part = writes.slice(start, start + writesPerCommit);
    const made = await commit(part, { isPresent });
    onResults(part, made.writeResults.map((result) => result.updateTime ?? made.commitTime), start + part.length);
  }
}

/** Deletes everything at and below a path, and reports how many documents are gone. */
export async function deleteBelow(path, progress) {
  let total = 0;
  let behind = "";
  for (;;) {
    const query = behind ? `?behind=${encodeURIComponent(behind)}` : "";
    const part = await call("DELETE", hearthURL(`documents/${encodedPath(path)}${query}`));
    total += part.deleted;
    progress(total);
    if (part.done) return total;
    behind = part.last;
  }
}

/** Reads lines of JSON from a stream until it ends or `stop` aborts it. */
export async function readLines(path, stop, handle) {
  const response = await send("GET", path, { signal: stop, headers: { Accept: "application/x-ndjson" } });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.length > 2) handle(JSON.parse(line));
  }
}
