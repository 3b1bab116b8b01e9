// The screen Rules: an editor with diagnostics and coverage, and a replay of real requests by the draft.
import { h } from "../core/dom.js";
import { computed, effect, onEnd, signal } from "../core/signals.js";
import { formatAddress, guard, place } from "../core/address.js";
import { command } from "../core/keys.js";
import { call, projectURL } from "../api/client.js";
import { numberText } from "../api/values.js";
import { say } from "../model/undo.js";
import { byteIndex, rulesEditor } from "../parts/rules-text.js";
import { button, codeBox, confirmAction, errorBox, tabList } from "../parts/dialog.js";
import { ruleTests } from "./rule-tests.js";
import { ruleTrial } from "./rule-trial.js";
import { saveRulesButton } from "./rules-file.js";
import { verdict } from "./why.js";

const starter = `rules_version = '2';

service cloud.firestore {
  match /databases/{database}/documents {
    // Each user reads and writes their own documents.
    match /users/{uid}/{rest=**} {
      allow read, write: if request.auth != null && request.auth.uid == uid;
    }
  }
}
`;

const bodyOf = (text) => ({ rules: { files: [{ name: "firestore.rules", content: text }] } });

export function rulesScreen() {
  const base = `${projectURL("/emulator/v1")}/databases/${encodeURIComponent(place.peek().database)}`;
  const state = signal("loading");
  const inForce = signal(null);
  const draft = signal("");
  const diagnostics = signal([]);
  const coverage = signal(new Map());
  const ranges = signal([]);
  const replayed = signal(null);
  const side = signal("replay");
  let failure = null;
  let editor = null;
  let checking = 0;
  let asked = 0;

  async function load() {
    try {
      const found = await call("GET", `${base}:securityRules`).catch((error) => {
        if (error.status === 404) return null;
        throw error;
      });
      const text = found ? found.rules.files.map((file) => file.content).join("\n") : null;
      inForce.set(text);
      draft.set(text ?? starter);
      state.set(text === null ? "none" : "ready");
      check();
      cover();
    } catch (error) { failure = error; state.set("failed"); }
  }

  async function check() {
    asked += 1;
    const mine = asked;
    try {
      const found = await call("POST", "/hearth/v1/rules:check", { body: bodyOf(draft.peek()) });
      if (mine === asked) diagnostics.set(found.diagnostics);
    } catch (error) { say(error.message, { isError: true }); }
  }

  async function cover() {
    if (inForce.peek() === null) return;
    try {
      const found = await call("GET", `${base}:ruleCoverage`);
      const counted = coverageOf(found.report);
      coverage.set(counted.lines);
      ranges.set(counted.marks);
    } catch { coverage.set(new Map()); }
  }

  /** What a report says of each line and of each condition. */
  function coverageOf(report) {
    const lines = new Map();
    const marks = [];
    for (const node of report) {
      const { line, currentOffset, endOffset } = node.sourcePosition;
      const values = (node.values ?? []).map((each) => ({ text: shortValue(each.value), count: each.count }));
      const total = values.reduce((sum, each) => sum + each.count, 0);
      const known = lines.get(line) ?? { total: 0, granted: 0 };
      known.total += total;
      known.granted += values.find((each) => each.text === "true")?.count ?? 0;
      lines.set(line, known);
      const isTrue = values.some((each) => each.text === "true");
      const kind = total === 0 ? "none" : isTrue && values.length > 1 ? "both" : isTrue ? "true" : "false";
      marks.push({ start: currentOffset, end: endOffset + 1, class: `cover-${kind}`, title: total === 0 ? "never evaluated"
        : values.map((each) => `${each.text}: ${numberText(each.count)}`).join(", ") });
    }
    return { lines, marks };
  }
  const timer = setInterval(() => { if (!document.hidden && side.peek() === "coverage") cover(); }, 3000);
  onEnd(() => { clearInterval(timer); clearTimeout(checking); });

  const isChanged = () => draft() !== (inForce() ?? "");
  guard.isDirty = () => draft.peek() !== (inForce.peek() ?? starter) && state.peek() !== "loading";
  onEnd(() => { guard.isDirty = () => false; });

  async function replay() {
    try { replayed.set(await call("POST", "/hearth/v1/requests:replay", { body: bodyOf(draft.peek()) })); } catch (error) {
      replayed.set({ error });
    }
    side.set("replay");
  }

  async function apply() {
    if (diagnostics.peek().some((each) => each.severity === "error")) { say("The rules do not compile yet.", { isError: true }); return; }
    const changes = await call("POST", "/hearth/v1/requests:replay", { body: bodyOf(draft.peek()) }).catch(() => null);
    const count = changes?.changed.length ?? 0;
    if (count > 0) {
      const denied = changes.changed.filter((request) => request.allowed).length;
      const isSure = await confirmAction({ title: "Put these rules in force?", action: "Apply the rules",
        body: h("p", {}, `Of the last ${numberText(changes.evaluated)} requests, these rules would deny ${denied} that were allowed, and allow ${
          count - denied} that were denied.`) });
      if (!isSure) return;
    }
    try {
      await call("PUT", `${base}:securityRules`, { body: bodyOf(draft.peek()) });
      inForce.set(draft.peek());
      state.set("ready");
      say("The rules are in force until the server stops. The file on disk is unchanged.");
      cover();
    } catch (error) { say(error.message, { isError: true }); }
  }

  const tests = ruleTests({ draft, goTo: (line) => editor?.goTo(line), isShown: () => side() === "test" && state() !== "loading",
    isValid: () => !diagnostics().some((each) => each.severity === "error") });
  /** The coverage of the tests, until the draft changes. */
  const tested = computed(() => {
    const found = tests.outcome();
    return found?.coverage && found.rules === draft() ? coverageOf(found.coverage) : null;
  });

  const trial = ruleTrial({ draft });
  command({ label: "Try one request", keys: "", group: "Rules", run: () => { side.set("try"); requestAnimationFrame(() => document.getElementById("try-path")?.focus()); } });
  command({ label: "Apply the rules", keys: "Ctrl S", group: "Rules", run: apply });
  command({ label: "Replay requests by these rules", keys: "Ctrl Enter", group: "Rules", run: replay });
  let problem = -1;
  command({ label: "Next problem", keys: "F8", group: "Rules", run: () => {
    const all = diagnostics.peek();
    if (all.length === 0) return;
    problem = (problem + 1) % all.length;
    editor?.goTo(all[problem].line);
  } });

  const marks = () => {
    const toIndex = byteIndex(draft.peek());
    const wrong = diagnostics().map((each) => ({ start: toIndex(each.start), end: Math.max(toIndex(each.end), toIndex(each.start) + 1),
      class: `squiggle ${each.severity}`, title: each.message }));
    // The coverage of the tests is that of the draft; the coverage of requests is that of the rules in force.
    const painted = side() === "test" ? tested()?.marks ?? [] : side() === "coverage" && !isChanged() ? ranges() : [];
    const text = draft.peek();
    const free = painted.map((each) => ({ ...each, start: toIndex(each.start), end: closed(text, toIndex(each.start), toIndex(each.end)) }))
      .filter((each) => !wrong.some((other) => other.start < each.end && each.start < other.end));
    return [...wrong, ...free];
  };
  const lines = () => {
    const result = new Map();
    const counted = side() === "test" ? tested()?.lines : isChanged() ? null : coverage();
    if (counted) {
      for (const [line, { total, granted }] of counted) {
        // Counting may have begun just now, so a zero is shown only if it was asked for.
        if (total === 0 && side() === "replay") continue;
        result.set(line, { hits: total === 0 ? "0" : `${granted}/${total}`, isMissed: total === 0,
          title: `evaluated ${numberText(total)} times, true ${numberText(granted)} times` });
      }
    }
    for (const each of diagnostics()) result.set(each.line, { ...result.get(each.line), class: each.severity, title: each.message });
    return result;
  };

  effect(() => { if (state() !== "loading") draft.peek(); });
  load();

  return h("div", { class: "fill" },
    h("div", { class: "head" }, h("h1", {}, "Rules"),
      h("span", { class: "muted clip hide-small" }, () => state() === "none" ? "no rules: every client may read and write everything"
        : inForce() === null ? "" : `in force: ${inForce().split("\n").length} lines`),
      h("span", { class: "grow" }),
      () => isChanged() && state() !== "loading" ? h("span", { class: "tag warn" }, "draft") : null,
      button("Replay requests", replay, { title: "Replay (Ctrl Enter)" }),
      saveRulesButton(() => draft.peek(), load),
      button("Apply", apply, { kind: "primary", title: "Apply (Ctrl S)" })),
    () => state() === "loading" ? h("div", { class: "busy" }) : state() === "failed" ? errorBox(failure, load) : h("div", {
      class: "split", style: { "grid-template-columns": innerWidth > 1020 ? "minmax(0, 1fr) 420px" : "" } },
    h("section", { "aria-label": "Editor" },
      editor = rulesEditor({ text: draft.peek(), marks, lines, onInput: (value) => {
        draft.set(value);
        clearTimeout(checking);
        checking = setTimeout(check, 300);
      } }),
      h("div", { class: "problems", role: "status" }, () => diagnostics().map((each) => h("button", { type: "button",
        onclick: () => editor.goTo(each.line) },
      h("span", { class: `tag ${each.severity === "error" ? "bad" : "warn"}` }, each.severity),
      h("span", { class: "grow value" }, each.message, each.suggestion ? h("span", { class: "muted" }, ` ${each.suggestion}`) : null),
      h("span", { class: "muted small" }, `line ${each.line}`))))),
    h("aside", { "aria-label": "What the rules do" },
      h("div", { class: "head" }, tabList("Side", [["try", "Try"], ["test", "Tests"], ["replay", "Replay"], ["coverage", "Coverage"]], side)),
      h("div", { class: "scroll pad stack" }, () => ({ try: trial.view, replay: replaySide, coverage: coverageSide, test: tests.view })[side()]()))));

  function replaySide() {
    const found = replayed();
    if (!found) {
      return [h("h2", {}, "What would change"), h("p", { class: "muted" }, "Replay evaluates the last requests of your app by the rules in the editor, before you apply them. "
        + "You see which decisions would change."), button("Replay requests", replay)];
    }
    if (found.error) return h("p", { class: "problem value" }, found.error.message);
    if (found.evaluated === 0) return [h("h2", {}, "No requests to replay"), h("p", { class: "muted" }, "Rules have not decided about a request yet.")];
    if (found.changed.length === 0) return [h("h2", {}, "Nothing would change"),
      h("p", { class: "muted" }, `These rules decide the last ${numberText(found.evaluated)} requests as they were decided.`)];
    return [h("h2", {}, `${numberText(found.changed.length)} of ${numberText(found.evaluated)} decisions would change`),
      h("ul", { class: "stack", style: { gap: "4px" } }, found.changed.slice(-200).reverse().map((request) => h("li", {},
        h("a", { class: "item", href: formatAddress({ ...place.peek(), screen: "why", path: [String(request.number)], parameters: {} }) },
          verdict(request.allowed), h("span", { class: "muted" }, "→"), verdict(!request.allowed),
          h("span", { class: "mono clip value grow" }, `${request.targets[0]?.method ?? ""} ${request.targets[0]?.path ?? ""}`)))))];
  }

  function coverageSide() {
    if (inForce() === null) return h("p", { class: "muted" }, "No rules are in force.");
    if (isChanged()) return h("p", { class: "muted" }, "The coverage is that of the rules in force. Apply the draft to see its own.");
    const all = [...coverage()];
    const never = all.filter(([, { total }]) => total === 0);
    return [h("h2", {}, all.length === 0 ? "No conditions" : `${all.length - never.length} of ${all.length} conditions were evaluated`),
      h("p", { class: "muted" }, "In the editor, green was true at least once, red was never true, and amber was never evaluated. The numbers beside the lines say how often. "
        + "Rules from a file are counted from the first time that this screen is opened."),
      never.length > 0 ? h("h3", {}, "Never evaluated") : null,
      h("ul", {}, never.map(([line]) => h("li", {}, h("button", { type: "button", class: "item mono", style: { border: 0, background: "none" },
        onclick: () => editor.goTo(line) }, h("span", { class: "muted" }, line), h("span", { class: "clip" }, (draft.peek().split("\n")[line - 1] ?? "").trim())))))];
  }
}

/** The end of an expression. The report leaves out the parentheses that close its last call. */
function closed(text, start, end) {
  let depth = 0;
  for (const character of text.slice(start, end)) depth += character === "(" ? 1 : character === ")" ? -1 : 0;
  let last = end;
  for (; depth > 0 && text[last] === ")"; depth -= 1) last += 1;
  return last;
}

function shortValue(value) {
  if (value === undefined || value === null) return "?";
  if (typeof value !== "object") return String(value);
  const [name, inner] = Object.entries(value)[0] ?? [];
  if (name === "boolValue") return String(inner);
  if (name === "undefined") return "error";
  return typeof inner === "object" ? name.replace("Value", "") : String(inner);
}
