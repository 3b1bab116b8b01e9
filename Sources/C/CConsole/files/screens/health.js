// The screen Health: what the server does now, from its metrics, with listeners, databases and indexes.
import { h } from "../core/dom.js";
import { onEnd, signal } from "../core/signals.js";
import { formatAddress, place } from "../core/address.js";
import { call, hearthURL, send } from "../api/client.js";
import { bytesText, numberText, visible } from "../api/values.js";
import { say } from "../model/undo.js";
import { lineChart } from "../parts/chart.js";
import { button, codeBox, showDialog } from "../parts/dialog.js";

const period = 2000;
const samplesMax = 450;

/** Reads the text format of Prometheus: a map of names to `[{ labels, value }]`. */
export function parseMetrics(text) {
  const found = new Map();
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (.+)$/.exec(line);
    if (!match || line.startsWith("#")) continue;
    const labels = {};
    for (const [, name, value] of (match[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value;
    if (!found.has(match[1])) found.set(match[1], []);
    found.get(match[1]).push({ labels, value: Number(match[3]) });
  }
  return found;
}

/** What the server says about itself: "ready", or what is not. */
function readinessText(text) {
  try {
    const found = JSON.parse(text);
    return found.status === "ready" ? "ready" : `not ready: ${[found.unready ?? found.reasons ?? []].flat().join(", ") || found.status}`;
  } catch { return text.trim(); }
}

const total = (metrics, name, filter = () => true) =>
  (metrics.get(name) ?? []).filter(({ labels }) => filter(labels)).reduce((sum, { value }) => sum + value, 0);

/** The duration under which a share of the requests between two samples was answered, in seconds. */
export function percentile(before, after, share) {
  const buckets = new Map();
  for (const { labels, value } of after.get("hearth_http_request_duration_seconds_bucket") ?? []) {
    buckets.set(labels.le, (buckets.get(labels.le) ?? 0) + value);
  }
  for (const { labels, value } of before.get("hearth_http_request_duration_seconds_bucket") ?? []) {
    buckets.set(labels.le, (buckets.get(labels.le) ?? 0) - value);
  }
  const sorted = [...buckets].map(([le, count]) => [le === "+Inf" ? Infinity : Number(le), count]).sort((a, b) => a[0] - b[0]);
  const all = sorted.at(-1)?.[1] ?? 0;
  if (all === 0) return 0;
  const reached = sorted.find(([, count]) => count >= all * share);
  return Number.isFinite(reached?.[0]) ? reached[0] : sorted.at(-2)?.[0] ?? 0;
}

export function healthScreen() {
  const samples = signal([]);
  const listeners = signal([]);
  const indexes = signal([]);
  const databases = signal(null);
  const ready = signal("");
  const info = signal(null);
  let last = null;
  let timer = 0;
  let isEnded = false;

  async function sample() {
    if (!document.hidden) {
      try {
        const metrics = parseMetrics(await (await send("GET", "/metrics")).text());
        const now = Date.now();
        if (last) {
          const seconds = (now - last.now) / 1000;
          // The console's own requests for metrics and logs are not counted.
          const own = (labels) => !["operations", "control"].includes(labels.dialect);
          const rate = (name, filter) => Math.max(0, (total(metrics, name, filter) - total(last.metrics, name, filter)) / seconds);
          samples.update((known) => [...known, {
            now, requests: rate("hearth_http_requests_total", own), p95: percentile(last.metrics, metrics, 0.95) * 1000,
            commits: rate("hearth_commits_total"), memory: total(metrics, "process_resident_memory_bytes"),
            denied: rate("hearth_rules_decisions_total", (labels) => /den/.test(Object.values(labels).join(" "))),
          }].slice(-samplesMax));
        }
        last = { now, metrics };
        info.set(metrics);
        const [found, readiness] = await Promise.all([call("GET", "/hearth/v1/listeners"), send("GET", "/readyz").then((response) => response.text(), (error) => error.message)]);
        listeners.set(found.listeners ?? []);
        ready.set(readinessText(readiness));
      } catch { /* The banner of the frame says that the server is gone. */ }
    }
    if (!isEnded) timer = setTimeout(sample, period);
  }
  sample();
  onEnd(() => { isEnded = true; clearTimeout(timer); });
  call("GET", hearthURL("indexes")).then((found) => indexes.set(found.indexes ?? []), () => {});

  async function count() {
    try { databases.set(await call("GET", "/hearth/v1/stats")); } catch (error) { say(error.message, { isError: true }); }
  }
  async function suggest() {
    try {
      const found = await call("POST", hearthURL("indexes:suggest"), { body: undefined });
      showDialog("Indexes for the queries that were served", () => [
        h("p", { class: "muted" }, `${numberText(found.queries)} kinds of queries were seen. ${found.added === 0 ? "None needs a composite index."
          : `${numberText(found.added)} composite ${found.added === 1 ? "index makes" : "indexes make"} them fast, and Firestore would require ${found.added === 1 ? "it" : "them"}.`}`),
        codeBox(found.file, "Copy the index file")], (close) => [button("Close", () => close(), { kind: "primary" })]);
    } catch (error) { say(error.message, { isError: true }); }
  }

  const card = (title, value, name, format = (number) => numberText(Math.round(number * 10) / 10)) => h("div", { class: "card" },
    h("h2", { class: "muted small" }, title), h("div", { class: "number" }, () => samples().length === 0 ? "…" : format(samples().at(-1)[name])), h("div", { class: "muted small" }, value),
    () => lineChart(samples().map((each) => [each.now, name === "memory" ? each[name] / 1e6 : each[name]]), { isTime: true, label: title, height: 72, from: 0 }));

  return h("div", { class: "scroll" },
    h("div", { class: "head" }, h("h1", {}, "Health"), h("span", { class: () => `tag ${ready() === "ready" || ready() === "" ? "good" : "bad"}` }, () => ready() || "…"),
      h("span", { class: "grow" }), button("Suggest indexes", suggest), button("Count documents", count)),
    h("div", { class: "pad stack", style: { gap: "20px" } },
      h("div", { class: "cards", style: { "grid-template-columns": "repeat(auto-fit, minmax(240px, 1fr))" } },
        card("Requests", "a second", "requests"), card("Latency, 95 %", "milliseconds, of all requests", "p95"),
        card("Commits", "a second", "commits"), card("Memory", "resident", "memory", bytesText)),
      h("section", { class: "stack" }, h("h2", {}, () => `Listeners (${numberText(listeners().length)})`), () => listeners().length === 0
        ? h("p", { class: "muted" }, "No client listens now.") : h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Listeners" }, h("table", {},
          h("thead", {}, h("tr", {}, ["Listener", "Targets", "Lag", "Queued"].map((text) => h("th", { scope: "col" }, text)))),
          h("tbody", {}, listeners().map((each) => h("tr", {}, h("td", { class: "value" }, visible(each.name)), h("td", { class: "mono value" }, each.targets.map(visible).join(", ")),
            h("td", {}, `${numberText(each.lagMilliseconds)} ms`), h("td", {}, bytesText(each.queuedBytes)))))))),
      h("section", { class: "stack" }, h("h2", {}, "Declared indexes"), () => indexes().length === 0
        ? h("p", { class: "muted" }, "None. Hearth answers every query without declared indexes; they make large collections faster.")
        : h("table", {}, h("tbody", {}, indexes().map((each) => h("tr", {}, h("td", { class: "mono value" }, each.index),
          h("td", {}, h("span", { class: `tag ${each.state === "ready" ? "good" : "warn"}` }, each.state)), h("td", {}, `${numberText(each.documents)} documents`)))))),
      () => databases() ? h("section", { class: "stack" }, h("h2", {}, "Databases"), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Databases" }, h("table", {},
        h("thead", {}, h("tr", {}, ["Database", "Documents", "Collections", "Index entries", "Used", "File"].map((text) => h("th", { scope: "col" }, text)))),
        h("tbody", {}, databases().databases.map((each) => h("tr", {},
          h("td", {}, h("a", { class: "text-link value", href: formatAddress({ ...place.peek(), screen: "data", project: each.project, database: each.database, path: [], parameters: {} }) },
            `${each.project} / ${each.database}`)),
          h("td", {}, numberText(each.documents)), h("td", {}, numberText(each.collections)), h("td", {}, numberText(each.indexEntries)),
          h("td", {}, bytesText(each.usedBytes)), h("td", {}, bytesText(each.fileBytes)))))))) : null));
}
