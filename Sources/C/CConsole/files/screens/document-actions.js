// What can be done with documents: create, duplicate, rename, delete. Each can be undone where that is possible.
import { h } from "../core/dom.js";
import { signal } from "../core/signals.js";
import { go, place } from "../core/address.js";
import { call, commit, countBelow, databaseName, deleteBelow, documentsURL, getDocument } from "../api/client.js";
import { lastSegment, parentOf, readTimeNow, resourceName } from "../api/client.js";
import { changesSince, comparedMax } from "../api/feed.js";
import { numberText, parseNotation, visible } from "../api/values.js";
import { inverse, remember, say } from "../model/undo.js";
import { button, confirmAction, showDialog } from "../parts/dialog.js";

/** An id as clients make them: 20 letters and digits. */
export function automaticID() {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  return Array.from(crypto.getRandomValues(new Uint8Array(20)), (byte) => letters[byte % 62]).join("");
}

/** Says what is wrong with an id, or "". */
function idProblem(id) {
  if (id === "") return "An id is needed.";
  if (id.includes("/")) return "An id cannot contain a slash.";
  if (id === "." || id === "..") return "An id cannot be a dot or two dots.";
  if (/^__.*__$/.test(id)) return "Ids that begin and end with two underscores are reserved.";
  return new TextEncoder().encode(id).length > 1500 ? "An id can have 1,500 bytes." : "";
}

function labeled(id, text, input, hint) {
  return h("div", { class: "field" }, h("label", { for: id }, text), input, hint ?? null);
}

/** Creates a document and undo for it. Throws what the server says. */
async function createDocument(path, fields) {
  const made = await call("PATCH", `${documentsURL(path)}?currentDocument.exists=false`,
    { body: { fields }, asViewer: true });
  remember(`Created ${path}`, [inverse(null, made)]);
  return made;
}

/** Asks for a new document. Without a collection, the user names one below `above`. */
export async function newDocument(collection, above = "", fields = "{}", title = "") {
  const isNewCollection = collection === "";
  const state = { collection, id: automaticID(), text: fields };
  const problem = signal("");
  const made = await showDialog(title || (isNewCollection ? "New collection" : `New document in ${collection}`), () => [
    isNewCollection ? labeled("new-collection", above ? `Collection below ${above}` : "Collection",
      h("input", { class: "input mono", id: "new-collection", autocomplete: "off", autofocus: true, placeholder: "products",
        oninput: (event) => { state.collection = event.target.value; } })) : null,
    labeled("new-id", isNewCollection ? "Id of its first document" : "Id",
      h("input", { class: "input mono", id: "new-id", autocomplete: "off", value: state.id,
        oninput: (event) => { state.id = event.target.value; }, ref: (input) => { if (!isNewCollection) setTimeout(() => input.select()); } })),
    labeled("new-fields", "Fields, as JSON",
      h("textarea", { class: "area mono", id: "new-fields", rows: 8, spellcheck: "false", value: state.text,
        oninput: (event) => { state.text = event.target.value; check(); } }),
      h("p", { class: "small muted" }, 'Times are {"$timestamp": "2025-03-27T14:30:00Z"}, references {"$ref": "users/ann"}. '
        + "You can also add fields afterwards.")),
    h("p", { class: "problem", role: "alert" }, () => problem()),
  ], (close) => [
    button("Cancel", () => close()),
    button("Create", async () => {
      const target = isNewCollection ? (above ? `${above}/${state.collection}` : state.collection) : collection;
      const wrong = (isNewCollection ? idProblem(state.collection) : "") || idProblem(state.id);
      if (wrong) { problem.set(wrong); return; }
      const values = check();
      if (!values) return;
      try {
        await createDocument(`${target}/${state.id}`, values);
        close(`${target}/${state.id}`);
      } catch (error) {
        problem.set(error.code === "ALREADY_EXISTS" ? `${state.id} exists already.` : error.message);
      }
    }, { kind: "primary" }),
  ]);
  function check() {
    try {
      const values = parseNotation(state.text.trim() || "{}", `${databaseName()}/documents/`);
      problem.set("");
      return values;
    } catch (error) {
      problem.set(`The fields are not valid: ${error.message}`);
      return null;
    }
  }
  if (made) go({ screen: "data", path: made.split("/"), parameters: place.peek().parameters });
}

/** Copies a document to another id. */
export async function duplicate(document, path) {
  const target = `${parentOf(path)}/${automaticID()}`;
  try {
    await createDocument(target, document.fields ?? {});
    go({ path: target.split("/"), parameters: place.peek().parameters });
  } catch (error) { say(error.message, { isError: true }); }
}

/** Gives a document another id: a copy, and the deletion of the original, in one commit. */
export async function rename(document, path) {
  const input = h("input", { class: "input mono", id: "rename-id", value: lastSegment(path), autocomplete: "off" });
  const problem = signal("");
  const target = await showDialog(`Rename ${lastSegment(path)}`, () => [
    labeled("rename-id", "New id", input),
    h("p", { class: "small muted" }, "A document cannot change its id: this creates a copy and deletes the original, in one "
      + "commit. Collections below it and references to it stay as they are."),
    h("p", { class: "problem", role: "alert" }, () => problem()),
  ], (close) => [button("Cancel", () => close()), button("Rename", async () => {
    const wrong = idProblem(input.value);
    if (wrong || input.value === lastSegment(path)) { problem.set(wrong || "This is its id already."); return; }
    const next = `${parentOf(path)}/${input.value}`;
    try {
      await commit([
        { update: { name: resourceName(next), fields: document.fields ?? {} }, currentDocument: { exists: false } },
        { delete: document.name, currentDocument: { updateTime: document.updateTime } },
      ]);
      const made = await getDocument(next);
      remember(`Renamed ${lastSegment(path)} to ${input.value}`, [inverse(null, made), inverse(document, { ...document,
        updateTime: undefined })].map((write) => write.update ? { ...write, currentDocument: { exists: false } } : write));
      close(next);
    } catch (error) {
      problem.set(error.code === "ALREADY_EXISTS" ? `${input.value} exists already.` : error.message);
    }
  }, { kind: "primary" })]);
  if (target) go({ path: target.split("/"), parameters: place.peek().parameters });
}

/** The writes that create again what was deleted at and below a path since a moment. */
async function writesBack(path, moment) {
  const { changes } = await changesSince(moment, new AbortController().signal);
  return changes.filter((change) => !change.after && (change.path === path || change.path.startsWith(`${path}/`)))
    .map(({ before }) => ({ update: { name: before.name, fields: before.fields ?? {} }, currentDocument: { exists: false } }));
}

/** Deletes a document, or a path with everything below it after the number was shown. */
export async function deletePath(path, document = null) {
  let count;
  try { count = await countBelow(path); } catch (error) { say(error.message, { isError: true }); return; }
  const parent = parentOf(path);
  const leave = () => go({ path: parent === "" ? [] : parent.split("/"), parameters: place.peek().parameters });
  if (document?.createTime && count <= 1) {
    try {
      await commit([{ delete: document.name, currentDocument: { updateTime: document.updateTime } }]);
      remember(`Deleted ${path}`, [inverse(document, null)]);
      leave();
    } catch (error) { say(error.message, { isError: true }); }
    return;
  }
  const words = `${numberText(count)} ${count === 1 ? "document" : "documents"}`;
  const isSure = await confirmAction({
    title: `Delete ${visible(lastSegment(path))}?`,
    body: [h("p", {}, "This deletes ", h("strong", { class: "mono value" }, visible(path)), ` and everything below it: ${words}.`),
      h("p", { class: "muted" }, count <= comparedMax ? "You can undo it as long as the history reaches back to now." : "It cannot be undone.")],
    action: `Delete ${words}`, word: count > 1 ? lastSegment(path) : "",
  });
  if (!isSure) return;
  try {
    const moment = await readTimeNow();
    await deleteBelow(path, (total) => say(`Deleting ${path}: ${numberText(total)} of ${numberText(count)}`));
    const label = `Deleted ${words} at ${path}`;
    if (count <= comparedMax && moment) remember(label, () => writesBack(path, moment));
    else say(label);
    leave();
  } catch (error) { say(error.message, { isError: true }); }
}
