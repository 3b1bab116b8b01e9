// One request, tried by the rules in the editor over the documents of the database. Nothing is written.
import { h } from "../core/dom.js";
import { signal } from "../core/signals.js";
import { call, hearthURL } from "../api/client.js";
import { button } from "../parts/dialog.js";
import { verdict, verdictParts } from "./why.js";

const methods = ["get", "list", "create", "update", "set", "delete"];
const writing = new Set(["create", "update", "set"]);
const key = "hearth.trial";

function remembered() {
  try { return JSON.parse(sessionStorage.getItem(key) ?? "null") ?? {}; } catch { return {}; }
}

/** The request as a case of a test file. The texts of JSON are put in as they are, so that large numbers keep their digits. */
function caseOf({ method, path, uid, claims, data, query }) {
  const parts = ['"it": "request"', '"expect": "allow"', `${JSON.stringify(method)}: ${JSON.stringify(path)}`];
  if (uid !== "") parts.push(`"as": {"uid": ${JSON.stringify(uid)}, "token": ${claims.trim() || "{}"}}`);
  if (writing.has(method)) parts.push(`"data": ${data.trim() || "{}"}`);
  if (method === "list" && query.trim() !== "") parts.push(`"query": ${query}`);
  return `{"cases": [{${parts.join(", ")}}]}`;
}

/** The side of the editor in which a request is tried. `draft` is a signal of the rules. Returns `view()` and `run()`. */
export function ruleTrial({ draft }) {
  const state = { method: "get", path: "", uid: "", claims: "{}", data: "{}", query: "", ...remembered() };
  const method = signal(state.method);
  const outcome = signal(null);
  let asked = 0;

  async function run() {
    asked += 1;
    const mine = asked;
    sessionStorage.setItem(key, JSON.stringify(state));
    try {
      for (const [label, text] of [["claims", state.claims], ["fields", writing.has(state.method) ? state.data : ""], ["query", state.method === "list" ? state.query : ""]]) {
        try { JSON.parse(text.trim() || "{}"); } catch { throw new Error(`The ${label} are not valid JSON.`.replace("query are", "query is")); }
      }
      const rules = draft.peek();
      const found = await call("POST", hearthURL("rules:try"), { body: { rules: { files: [{ name: "firestore.rules", content: rules }] }, tests: caseOf(state) } });
      if (mine === asked) outcome.set({ ...found, draft: rules });
    } catch (error) { if (mine === asked) outcome.set({ error }); }
  }

  const field = (id, text, input) => h("div", { class: "field" }, h("label", { for: `try-${id}` }, text), input);
  const input = (name, properties) => h("input", { class: "input mono", id: `try-${name}`, autocomplete: "off", spellcheck: "false", value: state[name],
    oninput: (event) => { state[name] = event.target.value.trim(); }, onkeydown: (event) => { if (event.key === "Enter") run(); }, ...properties });
  const area = (name, properties) => h("textarea", { class: "area mono", id: `try-${name}`, rows: 3, spellcheck: "false", value: state[name],
    oninput: (event) => { state[name] = event.target.value; }, ...properties });

  function view() {
    return [
      h("h2", {}, "Try one request"),
      h("p", { class: "muted small" }, "The rules in the editor decide about it over the documents of this database. Nothing is written."),
      h("div", { class: "row" },
        field("method", "Method", h("select", { class: "select", id: "try-method", onchange: (event) => { state.method = event.target.value; method.set(state.method); } },
          methods.map((name) => h("option", { value: name, selected: name === state.method }, name)))),
        h("div", { class: "grow" }, field("path", "Path", input("path", { placeholder: "users/ann" })))),
      field("uid", "User id, or nothing for nobody", input("uid", { placeholder: "ann" })),
      field("claims", "Claims, as JSON", area("claims", { rows: 1 })),
      () => writing.has(method()) ? field("data", method() === "update" ? "Fields to change, as JSON" : "Fields, as JSON", area("data"))
        : method() === "list" ? field("query", "Query, as JSON, or nothing", area("query", { placeholder: '{"where": [["owner", "==", "ann"]], "limit": 10}' })) : null,
      h("div", {}, button("Try it", run, { kind: "primary" })),
      h("div", { role: "status" }, result)];
  }

  function result() {
    const found = outcome();
    if (!found) return null;
    if (found.error) return h("p", { class: "problem value wrap-text" }, found.error.message);
    return h("section", { class: "stack trial", "aria-label": "The decision" },
      h("div", { class: "row wrap" }, verdict(found.request.allowed), h("strong", {}, found.request.targets[0]?.method ?? ""),
        h("span", { class: "mono value clip" }, found.request.targets[0]?.path ?? ""),
        found.draft === draft() ? null : h("span", { class: "tag warn" }, "the rules have changed since")),
      found.refusal ? h("p", { class: "value" }, found.refusal) : null,
      found.lookups.length > 0 ? h("p", { class: "small" }, h("span", { class: "muted" }, "looked up "), h("span", { class: "mono value" }, found.lookups.join(", "))) : null,
      verdictParts(found));
  }
  return { view, run };
}
