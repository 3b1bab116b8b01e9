// Rule tests beside the editor of rules: a test file, its results, its coverage, and the changes that no case detects.
import { h, icon } from "../core/dom.js";
import { effect, onEnd, signal } from "../core/signals.js";
import { command } from "../core/keys.js";
import { place } from "../core/address.js";
import { call } from "../api/client.js";
import { numberText } from "../api/values.js";
import { say } from "../model/undo.js";
import { button, confirmAction, copyText, openMenu } from "../parts/dialog.js";
import { saveText } from "./transfer.js";
import { verdict } from "./why.js";

const starterTests = `{
  "documents": {"$collections": ["users"], "users": {"ann": {"name": "Ann"}}},
  "cases": [
    {"it": "lets ann read her own document", "as": "ann", "get": "users/ann", "expect": "allow"},
    {"it": "hides it from ben", "as": "ben", "get": "users/ann", "expect": "deny"}
  ]
}
`;
/** How long the rules or the tests must stay the same before they run, in milliseconds. */
const settleTime = 500;

/**
 * The tests of a draft: `run()` and `view()` for the side of the editor, and signals of the last result. `draft` is a
 * signal of the rules, `isValid` says whether they compile, and `goTo` shows a line of the editor.
 */
export function ruleTests({ draft, isValid, goTo, isShown }) {
  const key = () => `hearth.tests.${place.peek().project}`;
  const text = signal(localStorage.getItem(key()) ?? "");
  const outcome = signal(null);
  const isRunning = signal(false);
  const mutations = signal(null);
  let timer = 0;
  let stop = new AbortController();
  onEnd(() => { clearTimeout(timer); stop.abort(); });

  async function run({ mutate = false } = {}) {
    clearTimeout(timer);
    stop.abort();
    stop = new AbortController();
    const mine = stop;
    if (text.peek().trim() === "") { outcome.set(null); return; }
    isRunning.set(mutate ? "mutations" : "tests");
    const rules = draft.peek();
    const asked = `${rules}\u0000${text.peek()}`;
    try {
      const found = await call("POST", "/hearth/v1/rules:test", { signal: mine.signal,
        body: { rules: { files: [{ name: "firestore.rules", content: rules }] }, tests: text.peek(), mutate } });
      outcome.set({ ...found, rules });
      if (mutate) mutations.set({ ...found.mutations, asked });
    } catch (error) {
      if (mine.signal.aborted) return;
      outcome.set({ error });
    }
    if (mine === stop) isRunning.set(false);
  }
  // Tests run by themselves after a change of the rules or of the tests.
  effect(() => {
    draft();
    const tests = text();
    if (!isShown() || !isValid()) return;
    clearTimeout(timer);
    timer = setTimeout(() => { localStorage.setItem(key(), tests.slice(0, 500_000)); run(); }, outcome.peek() ? settleTime : 0);
  });
  command({ label: "Run the tests of rules", keys: "", group: "Rules", when: () => text.peek() !== "", run: () => run() });

  async function record() {
    try {
      const { suites } = await call("GET", "/hearth/v1/requests:record");
      const own = suites.filter((suite) => suite.service === "cloud.firestore" || suites.length === 1).sort((a, b) => b.count - a.count)[0];
      if (!own) { say("The log has no request that can become a test. Use your app first."); return; }
      if (text.peek().trim() !== "" && !await confirmAction({ title: "Replace the tests?", action: "Replace the tests",
        body: h("p", {}, `The log has ${numberText(own.count)} requests, which become cases. They replace the tests in the editor.`) })) return;
      setText(own.tests);
      say(`${numberText(own.count)} requests became tests`);
    } catch (error) { say(error.message, { isError: true }); }
  }
  let area = null;
  const setText = (value) => { text.set(value); if (area) area.value = value; };
  const input = h("input", { type: "file", hidden: true, accept: ".json", "aria-label": "Test file to open", onchange: async (event) => {
    const [file] = event.target.files;
    if (file) setText(await file.text());
    event.target.value = "";
  } });

  function results() {
    const found = outcome();
    if (text().trim() === "") return null;
    if (!isValid()) return h("p", { class: "muted" }, "The tests run once the rules compile.");
    if (!found) return null;
    if (found.error) return h("p", { class: "problem value", role: "alert" }, found.error.message);
    const { run: { cases, passed, failed } } = found;
    return [
      h("div", { class: "row wrap", role: "status" },
        h("span", { class: `tag ${failed > 0 ? "bad" : "good"}` }, failed > 0 ? `${numberText(failed)} of ${numberText(passed + failed)} failed`
          : `${numberText(passed)} passed`)),
      h("ul", { class: "cases" }, [...cases].sort((a, b) => a.passed - b.passed).slice(0, 500).map(caseRow)),
      mutationList(),
    ];
  }

  function caseRow(each) {
    const head = [h("span", { class: `verdict ${each.passed ? "allow" : "deny"}` }, icon(each.passed ? "check" : "close"), each.passed ? "passed" : "failed"),
      h("span", { class: "grow value" }, each.it), each.allowedBy ? h("button", { type: "button", class: "link small", onclick: () => goTo(each.allowedBy) },
        `line ${each.allowedBy}`) : null];
    if (each.passed) return h("li", { class: "row" }, head);
    return h("li", {}, h("details", { open: true }, h("summary", { class: "row" }, head),
      h("div", { class: "row small" }, "expected", verdict(each.expect === "allow"), "got", verdict(each.got === "allow"),
        h("span", { class: "muted" }, `test file, line ${each.line}`)),
      h("pre", { class: "code small", tabindex: "0", "aria-label": `Why: ${each.it}` }, each.why.slice(1).join("\n"))));
  }

  function mutationList() {
    const found = mutations();
    const isCurrent = found?.asked === `${draft()}\u0000${text()}`;
    return h("section", { class: "stack", style: { gap: "8px" }, "aria-label": "Mutations" },
      h("div", { class: "row wrap" }, h("h3", { class: "grow" }, "Are the tests strict?"),
        () => isRunning() === "mutations" ? button("Stop", () => { stop.abort(); isRunning.set(false); })
          : button("Weaken the rules", () => run({ mutate: true }), { title: "Weaken each condition in turn, and find the changes that no test detects" })),
      () => isRunning() === "mutations" ? h("div", { class: "busy" }) : null,
      !found || !isCurrent ? h("p", { class: "muted small" }, "Hearth changes each condition of the rules in turn. A change that no test detects shows a missing test.")
        : found.survivors.length === 0 ? h("p", { class: "small" }, `The tests detect all ${numberText(found.tried)} changes${found.complete ? "" : " that were tried"}.`)
          : [h("p", { class: "small" }, `${numberText(found.survivors.length)} of ${numberText(found.tried)} changes are not detected${found.complete ? "" : "; not all were tried"}:`),
            h("ul", { class: "cases" }, found.survivors.slice(0, 200).map((each) => h("li", {}, h("button", { type: "button", class: "item", onclick: () => goTo(each.line) },
              h("span", { class: "muted mono small" }, each.line), h("span", { class: "mono small value wrap-text" }, each.change)))))]);
  }

  function view() {
    return [
      h("div", { class: "row wrap" }, h("h2", { class: "grow" }, "Tests"), () => isRunning() === "tests" ? h("span", { class: "muted small" }, "running…") : null,
        button("From requests", record, { title: "Make test cases of the requests in the log" }),
        button("More", (event) => openMenu(event.currentTarget, [
          { label: "Open a test file…", icon: "upload", run: () => input.click() },
          { label: "Save as a file", icon: "download", run: () => saveText(text.peek(), "rules.tests.json", "application/json") },
          { label: "Start with an example", run: () => setText(starterTests) },
          { label: "Copy the command", icon: "copy", run: () => copyText("hearth rules test rules.tests.json --rules firestore.rules --mutate", "Command copied") },
        ]), { "aria-haspopup": "menu" }), input),
      area = h("textarea", { class: "area mono tests", rows: 10, spellcheck: "false", wrap: "off", "aria-label": "Test file", placeholder:
        "Cases as JSON, as for hearth rules test. Make them of requests, open a file, or start with an example.", value: text.peek(),
      oninput: (event) => text.set(event.target.value) }),
      () => text().trim() === "" ? h("div", { class: "row wrap" }, button("Start with an example", () => setText(starterTests), { kind: "primary" }),
        button("Make tests of the requests in the log", record)) : null,
      h("div", { class: "stack" }, results),
    ];
  }
  return { view, outcome, run };
}
