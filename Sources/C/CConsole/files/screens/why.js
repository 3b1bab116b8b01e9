// The screen Why: the requests about which rules decided, with the value of every expression.
import { h, icon } from "../core/dom.js";
import { computed, effect, onEnd, signal, untracked } from "../core/signals.js";
import { addressOf, go, place } from "../core/address.js";
import { command } from "../core/keys.js";
import { call } from "../api/client.js";
import { isProduction, needs } from "../api/session.js";
import { numberText, timeText, visible } from "../api/values.js";
import { say } from "../model/undo.js";
import { virtualList } from "../parts/virtual-list.js";
import { byteIndex, paintText } from "../parts/rules-text.js";
import { button, codeBox, errorBox, tabList } from "../parts/dialog.js";

const kept = 1000;
const requestHeight = 30;
/** How often the log is read, in milliseconds, and how often while nothing is recorded. */
const readPeriod = 1500;
const readPeriodIdle = 15_000;

/**
 * Follows the log of requests while the tab is visible. Returns a signal of the requests, newest first. An emulator always records them; a
 * production server while `recording` says so.
 */
function followRequests(isPaused) {
  const requests = signal([]);
  const isLoaded = signal(false);
  const recording = signal(null);
  const isIdle = () => isProduction && !recording.peek()?.isOn;
  let last = 0;
  let timer = 0;
  let isEnded = false;
  const read = async () => {
    clearTimeout(timer);
    if (!document.hidden && !isPaused.peek()) {
      try {
        const page = await call("GET", `/hearth/v1/requests?after=${last}`);
        if (page.last < last) requests.set([]);
        last = page.last;
        if (page.requests.length > 0) requests.update((known) => [...page.requests.reverse(), ...known].slice(0, kept));
        if (isProduction) recording.set(await call("GET", "/hearth/v1/recording"));
        isLoaded.set(true);
      } catch { /* The banner of the frame says that the server is gone. */ }
    }
    if (!isEnded) timer = setTimeout(read, isIdle() ? readPeriodIdle : readPeriod);
  };
  read();
  onEnd(() => { isEnded = true; clearTimeout(timer); });
  const clear = async () => { await call("DELETE", "/hearth/v1/requests"); requests.set([]); };
  async function record(isOn) {
    try {
      recording.set(await call(isOn ? "POST" : "DELETE", "/hearth/v1/recording", isOn ? { body: {} } : {}));
      if (isOn) requests.set([]);
      read();
    } catch (error) { say(error.message, { isError: true }); }
  }
  return { requests, isLoaded, recording, record, clear };
}

const targetText = (request) => request.targets.length === 0 ? "a request that cannot be shown"
  : `${request.targets[0].path}${request.targets.length > 1 ? ` and ${request.targets.length - 1} more` : ""}`;
const methodText = (request) => request.targets.length > 1 ? "commit" : request.targets[0]?.method ?? "";
const userText = (request) => "uid" in request ? request.uid || "no user id" : "nobody";

export function verdict(isAllowed) {
  return h("span", { class: `verdict ${isAllowed ? "allow" : "deny"}` }, icon(isAllowed ? "check" : "close"), isAllowed ? "allowed" : "denied");
}

export function whyScreen() {
  const isPaused = signal(false);
  const which = signal("all");
  const filter = signal("");
  const { requests, isLoaded, recording, record, clear } = followRequests(isPaused);
  const chosen = computed(() => Number(place().path[0] ?? 0));
  const shown = computed(() => {
    const words = filter().toLowerCase().split(/\s+/).filter(Boolean);
    return requests().filter((request) => {
      if (which() === "denied" && request.allowed) return false;
      const text = `${methodText(request)} ${targetText(request)} ${userText(request)}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
  });
  const count = computed(() => shown().length);
  const detail = signal(null);
  effect(() => {
    const number = chosen();
    detail.set(null);
    if (number === 0) return;
    untracked(async () => {
      try { detail.set(await call("GET", `/hearth/v1/requests/${number}`)); } catch (error) { detail.set({ error }); }
    });
  });
  const choose = (number) => go({ screen: "why", path: [String(number)] }, { replace: true });
  const version = signal(0);
  effect(() => { shown(); chosen(); version.update((number) => number + 1); });

  command({ label: "Pause the log", keys: "Space", group: "Why", run: () => isPaused.update((value) => !value) });
  command({ label: "Filter requests", keys: "/", group: "Why", run: () => document.querySelector(".why-filter")?.focus() });

  const list = virtualList({
    label: "Requests", count, rowHeight: requestHeight, version,
    makeRow: () => {
      const row = h("div", { class: "line", role: "option" }, h("span", { class: "mono muted small" }), h("span", { class: "verdict" }),
        h("span", { class: "tag" }), h("span", { class: "id clip value grow" }), h("span", { class: "muted clip value", style: { "max-width": "30%" } }));
      row.addEventListener("click", () => choose(row.number));
      return row;
    },
    render: (element, index) => {
      const request = shown.peek()[index];
      if (!request) return;
      element.number = request.number;
      element.setAttribute("aria-selected", String(request.number === chosen.peek()));
      const [time, sign, method, path, user] = element.children;
      time.textContent = timeText(request.time).slice(11, 23);
      sign.className = `verdict ${request.allowed ? "allow" : "deny"}`;
      sign.replaceChildren(icon(request.allowed ? "check" : "close"), request.allowed ? "allowed" : "denied");
      method.textContent = methodText(request);
      path.textContent = visible(targetText(request));
      user.textContent = visible(userText(request));
    },
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = shown.peek();
    const index = Math.max(0, Math.min(all.length - 1, all.findIndex((request) => request.number === chosen.peek()) + step));
    if (all[index]) { choose(all[index].number); list.show(index); }
  });

  return h("div", { class: "fill" },
    h("div", { class: "head" }, h("h1", {}, "Why"),
      tabList("Which requests", [["all", "All"], ["denied", "Denied"]], which),
      h("input", { class: "input why-filter", type: "search", placeholder: "Filter by path, method or user", "aria-label": "Filter requests",
        style: { "max-width": "280px" }, oninput: (event) => filter.set(event.target.value) }),
      h("span", { class: "grow" }),
      h("span", { class: "muted small hide-small", role: "status", style: { "white-space": "nowrap" } }, () => `${numberText(count())} of the last ${numberText(kept)}`),
      () => recordingState(recording(), record),
      button(() => isPaused() ? "Resume" : "Pause", () => isPaused.update((value) => !value), { kind: "quiet" }),
      button("Clear", () => clear().catch((error) => say(error.message, { isError: true })), { kind: "quiet", ...needs("owner") })),
    () => isLoaded() && requests().length === 0 ? (isProduction ? noRecording(recording(), record) : noRequests()) : h("div", { class: "split" },
      h("section", { "aria-label": "Requests" }, list),
      h("section", { "aria-label": "The decision" }, () => !chosen() ? h("div", { class: "empty" }, h("h2", {}, "Choose a request"),
        h("p", {}, "You see the rule that decided, and the value of every expression, of allowed requests too."))
        : !detail() ? h("div", { class: "busy" }) : detail().error ? errorBox(detail().error) : decision(detail()))));
}

const minutesText = (seconds) => seconds >= 120 ? `${Math.ceil(seconds / 60)} minutes` : `${numberText(seconds)} ${seconds === 1 ? "second" : "seconds"}`;

/** Whether requests are recorded, and the button that changes it. Nothing in an emulator. */
function recordingState(found, record) {
  if (!found) return null;
  return found.isOn ? [h("span", { class: "tag warn", role: "status" }, `Recording: ${minutesText(found.secondsLeft)} or ${numberText(found.requestsLeft)} requests left`),
    button("Stop recording", () => record(false), needs("owner"))]
    : button("Record requests", () => record(true), needs("owner"));
}

function noRecording(found, record) {
  return h("div", { class: "scroll" }, h("div", { class: "empty" },
    found?.isOn ? [h("h2", {}, "Waiting for requests"), h("p", {}, "The next request about which security rules decide appears here.")]
      : [h("h2", {}, "Requests are not recorded"),
        h("p", {}, "Record them to see why rules allow or deny a request, with the value of every expression. A recording contains the documents that the rules read, "
          + "in the memory of the server. It ends after 10 minutes or 1,000 requests, and the log of the server says who began it."),
        button("Record requests", () => record(true), { kind: "primary", ...needs("owner") })]));
}

function noRequests() {
  return h("div", { class: "scroll" }, h("div", { class: "empty" },
    h("h2", {}, "No requests yet"),
    h("p", {}, "Here is every request about which security rules decided, with the reason. Requests of administrators, and requests without rules in force, need no decision and are not listed."),
    h("p", {}, "Point an app here, choose a user with “View as”, or send a request:"),
    codeBox(() => `curl '${location.origin}/v1/projects/${place().project}/databases/${place().database}/documents/users/ann'`, "Copy the command"),
    h("a", { class: "text-link", href: `#/${place.peek().project}/${place.peek().database}/rules` }, "See the rules in force")));
}

/** Shows the decision about a request: the lines of the rules with the results, and the trees of values. */
function decision(detail) {
  const { request, parts } = detail;
  return h("div", { class: "scroll" },
    h("div", { class: "pad stack" },
      h("div", { class: "row wrap" }, verdict(request.allowed), h("strong", {}, methodText(request)),
        request.service === "cloud.firestore" && request.targets.length === 1 && !request.targets[0].path.startsWith("**")
          ? h("a", { class: "mono value text-link", href: addressOf(request.targets[0].path) }, visible(targetText(request)))
          : h("span", { class: "mono value" }, visible(targetText(request)))),
      h("dl", { class: "facts" },
        h("dt", {}, "user"), h("dd", { class: "mono value" }, visible(userText(request))),
        h("dt", {}, "time"), h("dd", {}, timeText(request.time)),
        detail.lookups.length > 0 ? [h("dt", {}, "looked up"), h("dd", { class: "mono value" }, detail.lookups.map(visible).join(", "))] : null)),
    parts.length === 0 ? h("p", { class: "pad muted" }, "This request cannot be evaluated again.") : null,
    verdictParts(detail));
}

/** The parts of an explained request: the lines of the rules with the results, and the trees of values. */
export function verdictParts({ rules, parts }) {
  const toIndex = byteIndex(rules);
  return parts.map((part) => partView(part, rules, toIndex, parts.length > 1));
}

function partView(part, rules, toIndex, isOne) {
  const lines = rules.split("\n");
  const children = [];
  if (part.outcomes.length === 0) {
    children.push(h("p", { class: "pad" }, `No allow statement applies to ${part.method} at this path. Rules deny what no statement allows.`));
  }
  const source = h("div", { class: "source" });
  const trees = [...part.trees];
  let last = 0;
  for (const outcome of part.outcomes) {
    const isAllow = outcome.result === "true";
    const firstLine = outcome.line > last ? Math.max(last + 1, outcome.line - 1) : outcome.line;
    if (firstLine > last + 1 && last > 0) source.append(h("div", { class: "row-line dim" }, h("span", {}, "⋯"), h("span", {})));
    const end = toIndex(outcome.end);
    const lastLine = Math.max(outcome.line, rules.slice(0, end).split("\n").length);
    for (let line = firstLine; line <= lastLine; line += 1) {
      const isOwn = line >= outcome.line;
      source.append(h("div", { class: `row-line ${isOwn ? (isAllow ? "allow" : "deny") : ""}` }, h("span", {}, line),
        h("span", {}, paintText(lines[line - 1] ?? ""))));
    }
    last = lastLine;
    const tree = trees[0] && trees[0].start >= outcome.start && trees[0].start < outcome.end ? trees.shift() : null;
    source.append(h("div", { class: "trace" },
      h("div", {}, h("span", { class: `result ${resultClass(outcome.result)}` }, isAllow ? "allows" : outcome.result === "false" ? "does not allow" : "error"),
        outcome.result === "true" || outcome.result === "false" ? null : h("span", {}, `: ${outcome.result}`)),
      tree ? h("ul", {}, treeView(tree, rules, toIndex, isAllow)) : null));
  }
  children.push(source);
  return h("section", { "aria-label": `${part.method} ${part.path}` },
    isOne ? h("div", { class: "head" }, verdict(part.allowed), h("strong", {}, part.method), h("span", { class: "mono clip value" }, visible(part.path))) : null, children);
}

const resultClass = (text) => text === "true" ? "true" : text === "false" ? "false" : "error";
const valueClass = (text) => text === "true" ? "true" : text === "false" ? "false" : text.startsWith("error") ? "error" : "";

/** Shows an expression with its value. What did not decide, such as a part that held in a denial, is folded. */
function treeView(tree, rules, toIndex, isAllowed, depth = 0) {
  const text = rules.slice(toIndex(tree.start), toIndex(tree.end)).replace(/\s+/g, " ");
  const line = [h("span", {}, paintText(text.length > 140 ? `${text.slice(0, 139)}…` : text)), " → ",
    h("span", { class: `result ${valueClass(tree.value)} value` }, visible(tree.value))];
  const children = tree.children ?? [];
  if (children.length === 0) return h("li", {}, h("span", {}, line));
  const isTelling = depth === 0 || !/^(true|false)$/.test(tree.value) || tree.value === String(isAllowed);
  return h("li", {}, h("details", { open: isTelling }, h("summary", {}, line),
    h("ul", {}, children.map((child) => treeView(child, rules, toIndex, isAllowed, depth + 1)))));
}
