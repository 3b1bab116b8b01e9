// The screen Query: a builder, the results, the plan, and the same query as code.
import { h, icon, iconButton } from "../core/dom.js";
import { computed, effect, onEnd, signal, untracked } from "../core/signals.js";
import { addressOf, go, moment, place } from "../core/address.js";
import { command } from "../core/keys.js";
import { databaseName, listCollections, pathOf, runAggregation, runQuery, viewer } from "../api/client.js";
import { doubleText, fieldOf, mapNotation, numberText, summary, typeOf, visible } from "../api/values.js";
import { examplePipeline } from "../model/pipeline.js";
import { aggregation, codeOf, emptyQuery, neededIndex, operators, queryFrom, queryParent, structuredQuery } from "../model/query.js";
import { inferColumns } from "../model/rows.js";
import { button, codeBox, errorBox, openMenu, tabList } from "../parts/dialog.js";
import { lineChart } from "../parts/chart.js";
import { pipelineEditor } from "./pipeline.js";

const languages = [["hearth", "hearth"], ["curl", "REST"], ["javascript", "JavaScript"], ["python", "Python"], ["swift", "Swift"]];
const resultsMax = 1000;
const recentMax = 30;

/** The last queries that were run in this browser, the newest first: parameters of addresses. */
function recentQueries() {
  try { return JSON.parse(localStorage.getItem("hearth.queries") ?? "[]"); } catch { return []; }
}

function rememberQuery(parameters) {
  const text = JSON.stringify(parameters);
  const known = recentQueries().filter((each) => JSON.stringify(each) !== text);
  localStorage.setItem("hearth.queries", JSON.stringify([parameters, ...known].slice(0, recentMax)));
}

export function queryScreen() {
  const read = () => {
    try { return queryFrom(place.peek().parameters.q ?? "{}"); } catch { return emptyQuery(); }
  };
  let query = read();
  const version = signal(0);
  const code = signal(0);
  const tab = signal("results");
  const form = signal("table");
  const language = signal("hearth");
  const outcome = signal(null);
  const isRunning = signal(false);
  const names = signal([]);
  let stop = null;
  const pipeline = signal(place.peek().parameters.p ?? "");
  const kind = signal(place.peek().parameters.p === undefined ? "query" : "pipeline");
  const isPipeline = () => kind() === "pipeline";
  const editor = pipelineEditor({ text: pipeline, run: (options) => run(options), isRunning: () => isRunning(), change: (text) => {
    pipeline.set(text);
    go({ screen: "query", path: [], parameters: { p: text } }, { replace: true });
  } });
  function choose(name) {
    if (name === kind.peek()) return;
    outcome.set(null);
    kind.set(name);
    if (name === "query") changed(true);
    else {
      if (pipeline.peek() === "") pipeline.set(examplePipeline(query.path));
      go({ screen: "query", path: [], parameters: { p: pipeline.peek() } }, { replace: true });
    }
    run();
  }

  let isEnded = false;
  onEnd(() => { isEnded = true; });
  listCollections("").then((ids) => {
    // A response that arrives late must not lead back to this screen.
    if (isEnded) return;
    names.set(ids);
    if (!query.path && ids.length > 0 && kind.peek() === "query") { query.path = ids[0]; changed(true); run(); }
  }, () => {});
  effect(() => {
    const { parameters } = place();
    untracked(() => {
      if (parameters.p !== undefined && parameters.p !== pipeline.peek()) { pipeline.set(parameters.p); kind.set("pipeline"); version.update((number) => number + 1); }
      if (parameters.q && parameters.q !== JSON.stringify(query)) { query = read(); changed(true); run(); } });
  });
  effect(() => { viewer(); moment(); untracked(() => { if (query.path || kind.peek() === "pipeline") run({ isAutomatic: true }); }); });

  function changed(isStructure) {
    go({ screen: "query", path: [], parameters: { q: JSON.stringify(query) } }, { replace: true });
    if (isStructure) version.update((number) => number + 1);
    code.set(code.peek() + 1);
  }

  async function run({ isStop = false, isAutomatic = false } = {}) {
    stop?.abort();
    isRunning.set(false);
    if (isStop || (kind.peek() === "pipeline" && !editor.check(isAutomatic))) return;
    stop = new AbortController();
    const mine = stop;
    if (!isAutomatic && (query.path || kind.peek() === "pipeline")) rememberQuery(kind.peek() === "pipeline" ? { p: pipeline.peek() } : { q: JSON.stringify(query) });
    isRunning.set(true);
    const started = performance.now();
    try {
      if (kind.peek() === "pipeline") {
        const found = await editor.ask(stop.signal, isAutomatic);
        if (found) outcome.set({ ...found, milliseconds: performance.now() - started });
        isRunning.set(false);
        return;
      }
      const structured = structuredQuery(query, databaseName());
      const aggregate = aggregation(query);
      if (aggregate) {
        const fields = await runAggregation(queryParent(query), structured, [aggregate], { signal: stop.signal });
        outcome.set({ aggregate: fields[aggregate.alias], milliseconds: performance.now() - started });
      } else {
        const limited = { ...structured, limit: Math.min(structured.limit ?? resultsMax, resultsMax) };
        const parts = await runQuery(queryParent(query), limited, { explain: true, signal: stop.signal });
        const documents = parts.filter((part) => part.document).map((part) => part.document);
        const metrics = parts.find((part) => part.explainMetrics)?.explainMetrics;
        outcome.set({ documents, metrics, milliseconds: performance.now() - started, isCut: documents.length === resultsMax });
      }
    } catch (error) { if (error.name !== "AbortError") outcome.set({ error }); }
    if (mine === stop) isRunning.set(false);
  }

  command({ label: "Run the query", keys: "Ctrl Enter", group: "Query", run });

  function openRecent(anchor) {
    const label = (parameters) => {
      if (parameters.p !== undefined) return parameters.p.trim().replace(/\n\s*/g, " | ");
      try { return codeOf(queryFrom(parameters.q), "hearth", { root: databaseName() }).replace("hearth query ", ""); } catch { return ""; }
    };
    const items = recentQueries().map((parameters) => ({ label: visible(label(parameters)).slice(0, 90), run: () => {
      if (parameters.p !== undefined) { pipeline.set(parameters.p); kind.set("pipeline"); } else {
        query = queryFrom(parameters.q);
        kind.set("query");
      }
      outcome.set(null);
      go({ screen: "query", path: [], parameters }, { replace: true });
      version.update((number) => number + 1);
      code.set(code.peek() + 1);
      run();
    } })).filter((item) => item.label);
    openMenu(anchor, items.length > 0 ? items : [{ label: "The queries that you run appear here", run: () => {} }]);
  }

  const part = (label, ...children) => h("div", { class: "part" }, h("span", { class: "muted" }, label), children);
  const input = (label, value, set, properties = {}) => h("input", { class: "input mono", "aria-label": label, value, spellcheck: "false",
    autocomplete: "off", oninput: (event) => { set(event.target.value); changed(false); },
    onkeydown: (event) => { if (event.key === "Enter") run(); }, ...properties });
  const remove = (label, list, item) => iconButton("close", label, () => { list.splice(list.indexOf(item), 1); changed(true); run(); });

  function builder() {
    version();
    return [
      h("div", { class: "parts" },
        part("from", input("Collection", query.path, (value) => { query.path = value.trim().replace(/^\/|\/$/g, ""); },
          { list: "collection-names", placeholder: "collection" }),
        h("datalist", { id: "collection-names" }, () => names().map((id) => h("option", { value: id }))),
        h("label", { class: "row small", style: { "padding-right": "8px" } }, h("input", { type: "checkbox", checked: query.isGroup,
          onchange: (event) => { query.isGroup = event.target.checked; changed(true); run(); } }), "all with this name")),
        query.where.map((each) => part("where", input("Field", each.field, (value) => { each.field = value; }, { placeholder: "field" }),
          h("select", { class: "select", "aria-label": "Operator", onchange: (event) => { each.op = event.target.value; changed(false); } },
            operators.map(([text]) => h("option", { value: text, selected: text === each.op }, text))),
          input("Value", each.value, (value) => { each.value = value; }, { placeholder: 'value, "text", 2025-01-31' }),
          remove("Remove the condition", query.where, each))),
        query.order.map((each) => part("order", input("Field to sort by", each.field, (value) => { each.field = value; }, { placeholder: "field" }),
          h("select", { class: "select", "aria-label": "Direction", onchange: (event) => {
            each.isDescending = event.target.value === "desc";
            changed(false);
            run();
          } }, h("option", { value: "asc", selected: !each.isDescending }, "ascending"), h("option", { value: "desc", selected: each.isDescending }, "descending")),
          remove("Remove the order", query.order, each))),
        part("limit", input("Limit", query.limit, (value) => { query.limit = value; }, { placeholder: "none", inputmode: "numeric",
          style: { "max-width": "80px" } })),
        part("give", h("select", { class: "select", "aria-label": "Result", onchange: (event) => {
          query.aggregate = event.target.value;
          changed(true);
          run();
        } }, [["", "documents"], ["count", "count"], ["sum", "sum of"], ["avg", "average of"]].map(([name, text]) =>
          h("option", { value: name, selected: name === query.aggregate }, text))),
        query.aggregate === "sum" || query.aggregate === "avg"
          ? input("Field to aggregate", query.field, (value) => { query.field = value; }, { placeholder: "field" }) : null)),
      h("div", { class: "row wrap" },
        h("button", { type: "button", class: "button quiet", onclick: () => {
          query.where.push({ field: "", op: "==", value: "" });
          changed(true);
        } }, icon("plus"), "Condition"),
        h("button", { type: "button", class: "button quiet", onclick: () => {
          query.order.push({ field: "", isDescending: false });
          changed(true);
        } }, icon("plus"), "Order"),
        h("span", { class: "grow" }),
        h("button", { type: "button", class: "button primary", title: "Run (Ctrl Enter)", onclick: run }, icon("play"), "Run")),
    ];
  }

  function statistics() {
    const found = outcome();
    if (!found || found.error) return null;
    const stats = found.metrics?.executionStats;
    const read = Number(stats?.debugStats?.documents_scanned ?? 0);
    const entries = Number(stats?.debugStats?.index_entries_scanned ?? 0);
    const count = found.documents?.length ?? 1;
    return h("div", { class: "stats", role: "status" },
      h("span", {}, `${numberText(count)}${found.isCut ? "+" : ""} ${count === 1 ? "result" : "results"}`),
      h("span", {}, `${found.milliseconds.toFixed(1)} ms here`),
      stats ? h("span", {}, `${(parseFloat(stats.executionDuration) * 1000).toFixed(2)} ms at the server`) : null,
      stats ? h("span", {}, `${numberText(entries)} index entries, ${numberText(read)} documents read`) : null,
      count > 0 && read > count * 4 && read > 40 ? h("span", { class: "tag warn" }, `${Math.round(read / count)} read for each result`) : null);
  }

  function results() {
    const found = outcome();
    if (!found) return h("div", { class: "empty" }, h("h2", {}, "Ask something"), h("p", {}, "Name a collection, and run the query."));
    if (found.error) return errorBox(found.error, run);
    if (found.aggregate) {
      const value = found.aggregate;
      return h("div", { class: "empty" }, h("p", {}, { count: "documents match", sum: `sum of ${query.field}`, avg: `average of ${query.field}` }[query.aggregate]),
        h("div", { class: "number mono", style: { "font-size": "40px", "line-height": "48px" } }, "doubleValue" in value
          ? doubleText(value.doubleValue) : "integerValue" in value ? numberText(BigInt(value.integerValue)) : "null"));
    }
    if (found.documents.length === 0) {
      return h("div", { class: "empty" }, h("h2", {}, "Nothing matches"),
        h("p", {}, isPipeline() ? "No row reached the end of the pipeline." : query.where.length > 0 ? "No document meets all conditions." : "This collection has no documents."),
        query.where.length > 0 && !isPipeline() ? h("button", { type: "button", class: "button", onclick: () => { query.where.pop(); changed(true); run(); } },
          "Remove the last condition") : null);
    }
    if (form() === "json") {
      return h("div", { class: "scroll pad" }, codeBox(`{\n${found.documents.slice(0, 200).map((document, index) =>
        `  ${JSON.stringify(document.name ? pathOf(document.name) : String(index + 1))}: ${mapNotation(document.fields ?? {}, "  ")}`).join(",\n")}\n}`, "Copy the results"));
    }
    if (form() === "chart") return chart(found.documents);
    const asked = isPipeline() ? [] : [...query.where, ...query.order].map((each) => each.field.trim());
    const columns = inferColumns(found.documents.slice(0, 50)).slice(0, 12);
    // The fields that the query names are columns, even if few documents have them.
    for (const name of asked) if (name && !name.includes(".") && name !== "__name__" && !columns.some((each) => each.name === name)) {
      columns.push({ name, types: new Set() });
    }
    const isNumber = (column) => column.types.size > 0 && [...column.types].every((type) => ["integer", "double"].includes(type));
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Results" }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, isPipeline() ? "row" : query.isGroup ? "path" : "id"),
        columns.map((column) => h("th", { scope: "col", class: isNumber(column) ? "end" : "" }, visible(column.name))))),
      h("tbody", {}, found.documents.slice(0, 500).map((document, index) => {
        const path = document.name ? pathOf(document.name) : "";
        return h("tr", { class: path ? "pick" : "", onclick: (event) => { if (path && event.target.tagName !== "A") location.hash = addressOf(path); } },
          h("td", { class: "mono value" }, path ? h("a", { class: "text-link", href: addressOf(path) }, visible(query.isGroup || isPipeline() ? path : path.split("/").at(-1)))
            : h("span", { class: "muted" }, index + 1)),
          columns.map((column) => {
            const value = fieldOf(document, column.name);
            return h("td", { class: `value type-${typeOf(value)} ${isNumber(column) ? "end" : ""}` },
              value ? summary(value, 90) : h("span", { class: "muted" }, "–"));
          }));
      }))));
  }

  function chart(documents) {
    const columns = inferColumns(documents);
    const time = columns.find((column) => column.types.has("timestamp"));
    const numbers = columns.filter((column) => column.types.has("integer") || column.types.has("double")).slice(0, 4);
    if (numbers.length === 0) return h("div", { class: "empty" }, h("h2", {}, "No numbers to draw"), h("p", {}, "A chart needs a field with numbers."));
    const number = (value) => Number(value?.integerValue ?? value?.doubleValue ?? NaN);
    return h("div", { class: "scroll pad stack" }, numbers.map((column) => {
      const points = documents.map((document, index) => [time ? Date.parse(fieldOf(document, time.name)?.timestampValue ?? "") : index,
        number(fieldOf(document, column.name))]).filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y)).sort((a, b) => a[0] - b[0]);
      return h("figure", { class: "card" }, h("figcaption", {}, h("strong", { class: "value" }, visible(column.name)),
        h("span", { class: "muted" }, time ? ` over ${time.name}` : " in the order of the results")),
      lineChart(points, { isTime: Boolean(time), label: column.name, height: 160 }));
    }));
  }

  function plan() {
    const found = outcome();
    const plans = found?.metrics?.planSummary?.indexesUsed ?? [];
    const index = computedIndex();
    return h("div", { class: "scroll pad stack" },
      h("h2", {}, "How the server found the results"),
      plans.length === 0 ? h("p", { class: "muted" }, "Run a query that gives documents to see its plan.")
        : plans.map((each) => h("div", { class: "stack", style: { gap: "6px" } },
          h("p", { class: "mono value" }, `${each.query_scope ?? ""} ${each.properties ?? ""}`), codeBox(each.plan ?? "", "Copy the plan"))),
      h("h2", {}, "The index that Firestore in production would want"),
      index ? [h("p", { class: "muted" }, "Hearth answers this query without a declared index. Add this to firestore.indexes.json for Firestore, or to make large collections faster."),
        codeBox(JSON.stringify(index, null, 2), "Copy the index")]
        : h("p", { class: "muted" }, "None: the indexes of single fields are enough for this query."));
  }
  const computedIndex = () => { code(); return neededIndex(query); };

  const text = computed(() => {
    code();
    const { project } = place();
    try {
      return codeOf(query, language(), { root: databaseName(), origin: location.origin, project, host: location.host });
    } catch (error) { return error.message; }
  });

  return h("div", { class: "fill" },
    h("h1", { class: "visually-hidden" }, "Query"),
    h("section", { class: "builder", "aria-label": "Query builder" },
      h("div", { class: "row" }, tabList("Kind of query", [["query", "Query"], ["pipeline", "Pipeline"]], kind, choose), h("span", { class: "grow" }),
        button("Recent", (event) => openRecent(event.currentTarget), { kind: "quiet", "aria-haspopup": "menu" })),
      () => isPipeline() ? (version(), editor.view()) : builder()),
    h("div", { class: "head" },
      tabList("Query views", [["results", "Results"], ["plan", "Plan"], ["code", "Code"]], tab),
      () => tab() === "results" ? tabList("Form of the results", [["table", "Table"], ["json", "JSON"], ["chart", "Chart"]], form) : null,
      () => tab() === "code" && !isPipeline() ? tabList("Language", languages, language) : null,
      h("span", { class: "grow" }), statistics),
    () => isRunning() ? h("div", { class: "busy" }) : h("div", { style: { height: "2px" } }),
    () => tab() === "results" ? results() : isPipeline() ? (tab() === "plan" ? editor.plan(outcome()) : editor.code()) : tab() === "plan" ? plan() : h("div", { class: "scroll pad stack" }, codeBox(text, "Copy the code")));
}
