// The screen Data: collections, the documents of one, and a document.
import { h, icon, iconButton } from "../core/dom.js";
import { computed, effect, onEnd, signal, untracked } from "../core/signals.js";
import { addressOf, formatAddress, go, isPast, moment, place } from "../core/address.js";
import { command } from "../core/keys.js";
import { lastSegment, listCollections, parentOf, pathOf, viewer } from "../api/client.js";
import { follow } from "../api/feed.js";
import { hasRole, needs } from "../api/session.js";
import { fieldOf, numberText, summary, visible } from "../api/values.js";
import { previewField, rowsOf } from "../model/rows.js";
import { virtualList } from "../parts/virtual-list.js";
import { button, copyText, errorBox, openMenu } from "../parts/dialog.js";
import { deletePath, newDocument } from "./document-actions.js";
import { documentPanel } from "./document.js";
import { emptyDatabase } from "./empty.js";
import { changesSinceThen } from "./past.js";
import { documentHeight, rowClasses, tableView } from "./table.js";
import { exportCollection, importFiles, importInput, takeDrops } from "./transfer.js";

export function dataScreen() {
  const path = computed(() => place().path.join("/"));
  const collection = computed(() => {
    const segments = place().path;
    return segments.slice(0, segments.length - (segments.length % 2 === 0 ? 1 : 0)).join("/");
  });
  const documentPath = computed(() => place().path.length % 2 === 0 ? path() : "");
  const above = computed(() => parentOf(collection()));
  const view = computed(() => place().parameters.view === "table" ? "table" : "columns");
  const collections = signal(null);
  const failure = signal(null);

  async function loadCollections() {
    try {
      collections.set(await listCollections(above.peek()));
      failure.set(null);
    } catch (error) { failure.set(error); collections.set([]); }
  }
  const origin = computed(() => `${place().project} ${place().database} ${above()} ${moment()}`);
  effect(() => { origin(); untracked(loadCollections); });
  const mode = computed(() => isPast() && place().parameters.changes === "1" ? "changes" : failure() ? "failed"
    : collections()?.length === 0 && above() === "" && collection() === "" ? "empty" : "columns");

  // At the first visit, the first collection is opened, so that there are rows without a click.
  effect(() => {
    const ids = collections();
    if (ids?.length > 0 && place.peek().path.length === 0 && innerWidth > 680) {
      go({ path: [ids[0]], parameters: place.peek().parameters }, { replace: true });
    }
  });

  let reloading = 0;
  follow((changes) => {
    const known = collections.peek() ?? [];
    const isNew = changes.some((change) => {
      const rest = above.peek() ? change.path.startsWith(`${above.peek()}/`) ? change.path.slice(above.peek().length + 1) : ""
        : change.path;
      return rest !== "" && (!known.includes(rest.split("/")[0]) || !change.after);
    });
    if (!isNew) return;
    clearTimeout(reloading);
    reloading = setTimeout(loadCollections, 250);
  });
  onEnd(() => clearTimeout(reloading));

  command({ label: "New collection", keys: "Shift N", group: "Data", when: () => hasRole("editor"), run: () => newDocument("", above.peek()) });

  const box = h("div", { class: "fill" },
    h("h1", { class: "visually-hidden" }, "Data"),
    crumbs(path, view),
    () => mode() === "failed" ? errorBox(failure.peek(), loadCollections)
      : mode() === "changes" ? changesSinceThen()
      : mode() === "empty" ? (moment() ? nothingThen() : emptyDatabase())
        : h("div", { class: () => `columns ${view() === "table" || !documentPath() ? "no-document" : ""}` },
          rootsColumn(above, collections, collection),
          () => collection() === "" ? null : documentsColumn(collection(), documentPath, view),
          () => documentPath() && view() === "columns"
            ? h("section", { class: "column front", "aria-label": "Document" }, documentPanel(documentPath())) : null));
  if (hasRole("editor")) takeDrops(box, importFiles);
  return box;
}

function nothingThen() {
  return h("div", { class: "empty" }, h("h2", {}, "There was nothing yet"), h("p", {}, "At this moment the database had no documents."));
}

function crumbs(path, view) {
  return h("div", { class: "head" },
    h("nav", { class: "crumbs", "aria-label": "Path" }, () => {
      const segments = path() === "" ? [] : path().split("/");
      const parts = [h("a", { href: formatAddress({ ...place(), path: [], parameters: {} }), class: "muted",
        onclick: (event) => { event.preventDefault(); go({ path: segments.slice(0, 1) }); } }, place().database)];
      const hidden = segments.length > 6 ? segments.length - 5 : 0;
      segments.forEach((segment, index) => {
        if (index > 0 && index <= hidden) {
          if (index === hidden) parts.push(h("span", { class: "muted" }, "/ … "));
          return;
        }
        parts.push(h("span", { class: "muted" }, "/"),
          h("a", { href: addressOf(segments.slice(0, index + 1).join("/")), class: "clip value mono",
            "aria-current": index === segments.length - 1 ? "page" : null }, visible(segment)));
      });
      return parts;
    }),
    () => path() === "" ? null : iconButton("copy", "Copy the path", () => copyText(path.peek(), "Path copied")),
    h("div", { class: "segments", role: "group", "aria-label": "View" },
      [["columns", "Columns"], ["table", "Table"]].map(([name, label]) => h("button", {
        type: "button", "aria-pressed": () => String(view() === name), title: `${label} (V)`,
        onclick: () => go({ path: place.peek().path, parameters: { ...place.peek().parameters, view: name === "table" ? name : "" } },
          { replace: true }),
      }, icon(name), h("span", { class: "hide-small" }, label)))));
}

function rootsColumn(above, collections, collection) {
  const filter = signal("");
  const input = importInput();
  return h("section", { class: () => `column roots ${collection() === "" ? "front" : ""}`, "aria-label": "Collections" },
    h("div", { class: "head" },
      () => above() ? h("a", { href: addressOf(above()), class: "row grow", title: `Back to ${above()}` }, icon("left"),
        h("span", { class: "clip value mono" }, visible(lastSegment(above()))))
        : h("h2", { class: "grow" }, "Collections"),
      input, iconButton("upload", "Import files", () => input.click(), needs("editor")),
      iconButton("plus", "New collection (Shift N)", () => newDocument("", above.peek()), needs("editor"))),
    () => (collections()?.length ?? 0) > 12 ? h("div", { class: "pad-small" }, h("input", { class: "input",
      type: "search", placeholder: "Filter", "aria-label": "Filter collections",
      oninput: (event) => filter.set(event.target.value) })) : null,
    h("ul", { class: "list" }, () => (collections() ?? [])
      .filter((id) => id.toLowerCase().includes(filter().toLowerCase())).slice(0, 2000).map((id) => {
        const target = above() ? `${above()}/${id}` : id;
        return h("li", {}, h("a", { class: "item", href: addressOf(target),
          "aria-current": () => collection() === target ? "true" : null },
        icon("data"), h("span", { class: "clip value grow" }, visible(id))));
      })));
}

function documentsColumn(collection, documentPath, view) {
  const source = rowsOf(collection);
  onEnd(() => source.end());
  effect(() => { viewer(); moment(); untracked(() => source.load()); });

  let reloading = 0;
  follow((changes) => {
    let isMoved = false;
    for (const change of changes) if (parentOf(change.path) === collection) isMoved = source.apply(change) || isMoved;
    if (!isMoved || reloading) return;
    // Many commits a second make one reload.
    reloading = setTimeout(() => { reloading = 0; source.load({ isQuiet: true }); }, source.isWhole ? 200 : 1000);
  });
  onEnd(() => clearTimeout(reloading));

  const pathAt = (index) => {
    const row = source.row(index);
    return row ? pathOf(row.name) : "";
  };
  function select(target, replace = true) {
    go({ path: target.split("/"), parameters: place.peek().parameters }, { replace });
  }
  async function move(step, list) {
    const total = source.count.peek();
    if (total === 0) return;
    const current = documentPath.peek() ? source.rankOf(documentPath.peek()) : -1;
    const next = Math.max(0, Math.min(total - 1, current < 0 && Math.abs(step) < 1e6 ? 0 : current + step));
    list.show(next);
    for (let tries = 0; tries < 40 && !pathAt(next); tries += 1) await new Promise((done) => setTimeout(done, 50));
    if (pathAt(next)) select(pathAt(next));
  }
  let list;
  const onkeydown = (event) => {
    const page = list.pageRows();
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 }[event.key];
    if (step) { event.preventDefault(); move(step, list); }
    if (event.key === "Enter" || event.key === "ArrowRight") {
      document.querySelector(".document input, .document select, .document button")?.focus();
    }
  };
  command({ label: "New document", keys: "N", group: "Data", when: () => hasRole("editor"), run: () => newDocument(collection) });
  command({ label: "Filter by id", keys: "/", group: "Data", run: () => section.querySelector("input[type=search]").focus() });
  command({ label: "Switch between columns and table", keys: "V", group: "Data", run: () => go({ path: place.peek().path,
    parameters: { ...place.peek().parameters, view: view.peek() === "table" ? "" : "table" } }, { replace: true }) });

  // The list stays while its rows change, with its focus and its scroll position.
  const mode = computed(() => source.state() === "failed" ? "failed" : source.state() === "ready" && source.count() === 0 ? "empty" : view());

  const section = h("section", {
    class: () => `column ${documentPath() ? "" : "front"}`, "aria-label": `Documents of ${collection}`,
  },
  h("div", { class: "head" },
    h("h2", { class: "clip value mono", style: { "min-width": "72px" }, title: collection }, visible(lastSegment(collection))),
    h("span", { class: "tag", role: "status" }, () => source.state() === "loading" ? "…"
      : `${numberText(source.count())}${source.isCounted() ? "" : "+"}`),
    h("span", { class: "grow" }),
    h("input", { class: "input", type: "search", placeholder: "Filter ids…", "aria-label": "Filter by the start of the id",
      style: { "flex": "0 1 130px", "min-width": "60px" }, oninput: (event) => {
        clearTimeout(event.target.waiting);
        event.target.waiting = setTimeout(() => { source.setPrefix(event.target.value); if (list) list.scrollTop = 0; }, 200);
      } }),
    iconButton("plus", "New document (N)", () => newDocument(collection), needs("editor")),
    iconButton("more", `More about ${collection}`, (event) => openMenu(event.currentTarget, [
      { label: "Query this collection", icon: "query", run: () => go({ screen: "query", path: [],
        parameters: { q: JSON.stringify({ path: collection }) } }) },
      { label: "Copy the path", icon: "copy", run: () => copyText(collection, "Path copied") },
      { label: "Export as lines of JSON", icon: "download", run: () => exportCollection(collection) },
      null,
      { label: "Delete the collection…", icon: "trash", isDanger: true, needs: "editor", run: () => deletePath(collection) },
    ]), { "aria-haspopup": "menu" })),
  () => source.state() === "loading" ? h("div", { class: "busy" }) : null,
  () => {
    switch (mode()) {
      case "failed": return errorBox(source.error, () => source.load());
      case "empty": return h("div", { class: "empty" }, h("h2", {}, "No documents"),
        h("p", {}, "This place has no documents, or none whose id starts with the filter."),
        button("New document", () => newDocument(collection), { kind: "primary", ...needs("editor") }));
      case "table": return tableView(source, collection, documentPath, select, onkeydown, (made) => { list = made; });
      default: return list = columnList(source, collection, documentPath, select, onkeydown);
    }
  });
  return section;
}

function columnList(source, collection, documentPath, select, onkeydown) {
  const preview = computed(() => previewField(source.sample()));
  effect(() => source.setFields(preview() ? [preview()] : []));
  const version = signal(0);
  effect(() => { source.version(); documentPath(); preview(); version.update((number) => number + 1); });
  const list = virtualList({
    label: `Documents of ${collection}`, count: source.count, rowHeight: documentHeight, version,
    makeRow: () => {
      const row = h("div", { class: "line", role: "option" },
        h("span", { class: "id clip value" }), h("span", { class: "preview clip value" }));
      row.addEventListener("click", () => { if (row.target) select(row.target, false); });
      return row;
    },
    render: (element, index) => {
      const row = source.row(index);
      const target = row ? pathOf(row.name) : "";
      element.target = target;
      element.className = `line ${rowClasses(source, target, row)}`;
      element.setAttribute("aria-selected", String(target !== "" && target === documentPath.peek()));
      element.setAttribute("aria-posinset", index + 1);
      element.setAttribute("aria-setsize", source.count.peek());
      element.firstChild.textContent = row ? visible(lastSegment(target)) : "…";
      element.lastChild.textContent = !row ? "" : row.createTime ? summary(fieldOf(row, preview.peek()), 80) : "no document";
    },
    onVisible: source.need,
  });
  list.addEventListener("keydown", onkeydown);
  return list;
}
