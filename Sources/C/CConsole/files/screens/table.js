// The documents of a collection as a table, whose cells can be edited.
import { h } from "../core/dom.js";
import { computed, effect, onEnd, signal } from "../core/signals.js";
import { go, moment, place } from "../core/address.js";
import { command } from "../core/keys.js";
import { hasRole, roleReason } from "../api/session.js";
import { commit, databaseName, getDocument, lastSegment, pathOf } from "../api/client.js";
import { fieldOf, isEqual, summary, typeOf, visible } from "../api/values.js";
import { nodeOf, valueOf } from "../model/nodes.js";
import { conditionValue } from "../model/query.js";
import { inferColumns } from "../model/rows.js";
import { inverse, remember, say } from "../model/undo.js";
import { virtualList } from "../parts/virtual-list.js";
import { cellText, cellWrite, selectionOf } from "./bulk.js";
import { documentPanel } from "./document.js";

export const documentHeight = 30;

export function rowClasses(source, target, row) {
  return `${row && !row.createTime ? "ghost" : ""} ${row && source.isChanged(target) ? "changed" : ""}`;
}

/** Reads what was typed into a cell: a value of the type that the cell has, or any value into an empty cell. */
function typedValue(name, value, text) {
  if (["missing", "null"].includes(typeOf(value))) return conditionValue(text, databaseName());
  if (typeOf(value) === "boolean" && !["true", "false"].includes(text.trim())) throw new Error("write true or false");
  return valueOf({ ...nodeOf(name, value), text: typeOf(value) === "boolean" ? text.trim() : text }, databaseName());
}

/**
 * Shows the table. `select(path)` shows a document below it, `move` handles the keys that move between rows, and `keep`
 * receives the list.
 */
export function tableView(source, collection, documentPath, select, move, keep) {
  const columns = computed(() => inferColumns(source.sample()).slice(0, 12));
  const names = computed(() => columns().map((column) => column.name).join("\n"));
  source.setFields([]);
  const selection = selectionOf(collection, source, () => columns.peek().map((column) => column.name));
  const cursor = signal(0);
  return () => {
    names();
    const shown = columns.peek();
    const width = (column) => column.types.has("timestamp") ? "minmax(178px, 1fr)"
      : column.types.has("string") ? "minmax(120px, 2fr)" : "minmax(96px, 1fr)";
    const template = `36px minmax(130px, 1.4fr) ${shown.map(width).join(" ")}`;
    const isNumber = (column) => [...column.types].every((type) => ["integer", "double"].includes(type));
    const version = signal(0);
    effect(() => { source.version(); documentPath(); cursor(); selection.paths(); version.update((number) => number + 1); });
    const head = h("div", { class: "grid-head", role: "row", style: { "grid-template-columns": template } },
      h("div", { class: "cell", role: "columnheader" }, h("span", { class: "visually-hidden" }, "Selected")),
      h("div", { class: "cell", role: "columnheader" }, "id"),
      shown.map((column) => h("div", { class: `cell ${isNumber(column) ? "end" : ""}`, role: "columnheader",
        title: `${column.name}: ${[...column.types].join(", ")}` }, visible(column.name))));
    let rows = 0;
    const list = virtualList({
      label: `Documents of ${collection}`, count: source.count, rowHeight: documentHeight, version, role: "grid", head,
      makeRow: () => {
        rows += 1;
        const check = h("input", { type: "checkbox", tabindex: "-1" });
        const row = h("div", { class: "grid-row", role: "row", style: { "grid-template-columns": template } },
          h("div", { class: "cell check", role: "gridcell" }, check),
          h("div", { class: "cell mono value", role: "gridcell", id: `cell-${rows}-0` }),
          shown.map((column, at) => h("div", { class: `cell value ${isNumber(column) ? "end" : ""}`, role: "gridcell", id: `cell-${rows}-${at + 1}` })));
        row.addEventListener("click", (event) => {
          if (!row.target) return;
          if (event.target === check || event.target === row.firstChild || event.shiftKey || event.ctrlKey || event.metaKey) {
            // The list shows what is selected; the browser must not toggle the box by itself.
            event.preventDefault();
            setTimeout(() => selection.toggle(row.index, event.shiftKey));
            return;
          }
          cursor.set(Math.max(0, [...row.children].indexOf(event.target.closest(".cell")) - 1));
          if (row.target !== documentPath.peek()) select(row.target, false);
        });
        row.addEventListener("dblclick", (event) => {
          const at = [...row.children].indexOf(event.target.closest(".cell")) - 2;
          if (at >= 0) edit(row, at);
        });
        return row;
      },
      render: (element, index) => {
        const row = source.row(index);
        const target = row ? pathOf(row.name) : "";
        const isCurrent = target !== "" && target === documentPath.peek();
        element.target = target;
        element.index = index;
        element.className = `grid-row ${rowClasses(source, target, row)}`;
        element.setAttribute("aria-selected", String(isCurrent));
        element.setAttribute("aria-rowindex", index + 2);
        const check = element.firstChild.firstChild;
        check.checked = selection.paths.peek().has(target);
        check.disabled = !row?.createTime;
        check.setAttribute("aria-label", `Select ${lastSegment(target)}`);
        element.children[1].textContent = row ? visible(lastSegment(target)) : "…";
        element.children[1].className = `cell mono value ${isCurrent && cursor.peek() === 0 ? "cursor" : ""}`;
        shown.forEach((column, at) => {
          const cell = element.children[at + 2];
          const value = fieldOf(row, column.name);
          cell.textContent = summary(value, 100);
          cell.className = `cell value type-${typeOf(value)} ${isNumber(column) ? "end" : ""} ${isCurrent && cursor.peek() === at + 1 ? "cursor" : ""}`;
        });
        if (isCurrent) list.setAttribute("aria-activedescendant", element.children[Math.min(cursor.peek(), shown.length) + 1].id);
      },
      onVisible: source.need,
    });
    effect(() => list.setAttribute("aria-rowcount", source.count() + 1));
    list.setAttribute("aria-colcount", shown.length + 2);
    list.setAttribute("aria-multiselectable", "true");
    const current = () => [...list.querySelectorAll(".grid-row")].find((row) => row.target && row.target === documentPath.peek());
    list.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step) cursor.update((at) => Math.max(0, Math.min(shown.length, at + step)));
      else if ((event.key === "Enter" || event.key === "F2") && cursor.peek() > 0 && current()) edit(current(), cursor.peek() - 1);
      else if (event.key === " " && current()) selection.toggle(current().index, event.shiftKey);
      else { move(event); return; }
      event.preventDefault();
    });
    keep(list);
    command({ label: "Delete the selected documents", keys: "Shift Delete", group: "Table", when: () => hasRole("editor") && selection.paths.peek().size > 0, run: selection.remove });
    command({ label: "Edit the cell", keys: "F2", group: "Table", when: () => hasRole("editor"), run: () => { if (current() && cursor.peek() > 0) edit(current(), cursor.peek() - 1); } });
    const close = () => go({ path: collection.split("/"), parameters: place.peek().parameters });
    return [selection.bar(), list, () => documentPath() ? h("section", { class: "drawer", "aria-label": "Document" },
      documentPanel(documentPath(), close)) : null];

    /** Puts an input over a cell. Enter saves and moves down, Tab saves and moves right, Escape gives up. */
    function edit(element, at) {
      const document_ = source.row(element.index);
      const { name } = shown[at];
      const value = fieldOf(document_, name);
      if (!document_?.createTime) return;
      if (!hasRole("editor")) { say(roleReason("editor")); return; }
      if (moment.peek()) { say("The past cannot be changed. Go back to now to write."); return; }
      const text = cellText(value);
      if (text === null) {
        say("Lists, maps and long texts are edited below the table.");
        if (document_ && pathOf(document_.name) !== documentPath.peek()) select(pathOf(document_.name), false);
        return;
      }
      const [box, line] = [element.children[at + 2].getBoundingClientRect(), element.getBoundingClientRect()];
      let isOver = false;
      const finish = () => {
        if (isOver) return;
        isOver = true;
        list.removeEventListener("scroll", finish);
        input.remove();
        list.focus({ preventScroll: true });
      };
      async function save(next) {
        if (isOver) return;
        if (input.value === text) { finish(); next?.(); return; }
        let made;
        try { made = typedValue(name, value, input.value); } catch (error) {
          input.setAttribute("aria-invalid", "true");
          say(`${name}: ${error.message}`, { isError: true });
          return;
        }
        finish();
        const write = async (before) => {
          const { writeResults } = await commit([cellWrite(before, name, made)]);
          remember(`Changed ${name} of ${lastSegment(before.name)}`, [inverse(before, { name: before.name, updateTime: writeResults[0].updateTime })]);
        };
        try {
          try { await write(document_); } catch (error) {
            // Another field of the document may have changed since the table was read.
            const present = error.code === "FAILED_PRECONDITION" ? await getDocument(pathOf(document_.name)) : null;
            if (!present || !isEqual(fieldOf(present, name), value)) throw error;
            await write(present);
          }
          next?.();
        } catch (error) {
          say(error.code === "FAILED_PRECONDITION" ? `${name} changed meanwhile. The table shows its new value.` : error.message, { isError: true });
          source.load({ isQuiet: true });
        }
      }
      const input = h("input", { class: `cell-input value type-${typeOf(value)}`, "aria-label": `${name} of ${lastSegment(document_.name)}`, value: text, spellcheck: "false",
        autocomplete: "off", style: { left: `${box.left}px`, top: `${line.top}px`, width: `${Math.max(box.width, 140)}px`, height: `${line.height}px` },
        onblur: () => save(), onkeydown: (event) => {
          event.stopPropagation();
          if (event.key === "Escape") finish();
          else if (event.key === "Enter") save(() => { move({ key: "ArrowDown", preventDefault() {} }); });
          else if (event.key === "Tab") { cursor.set(Math.max(1, Math.min(shown.length, cursor.peek() + (event.shiftKey ? -1 : 1)))); save(); } else return;
          event.preventDefault();
        } });
      cursor.set(at + 1);
      if (element.target !== documentPath.peek() && documentPath.peek() !== "") select(element.target, true);
      list.addEventListener("scroll", finish, { passive: true });
      onEnd(finish);
      list.parentElement.append(input);
      input.focus();
      input.select();
    }
  };
}
