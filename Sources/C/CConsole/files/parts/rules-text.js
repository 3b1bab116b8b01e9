// The text of rules: colors, places in bytes, and an editor.
import { h } from "../core/dom.js";
import { effect } from "../core/signals.js";

const words = /^(?:rules_version|service|match|allow|if|function|return|let|true|false|null|in|is|read|write|get|list|create|update|delete)$/;

/** Cuts a text into `[class, text]`. */
export function highlight(text) {
  const parts = [];
  const pattern = /(\/\/[^\n]*|\/\*[\s\S]*?\*\/)|('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")|(\/[\w{}=*$()/-]+(?=\s+\{))|(\b\d+(?:\.\d+)?\b)|([A-Za-z_]\w*)/g;
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > end) parts.push(["", text.slice(end, match.index)]);
    const [all, comment, string, path, number, word] = match;
    const kind = comment ? "comment" : string ? "string" : path ? "path" : number ? "number" : word && words.test(word) ? "keyword" : "";
    parts.push([kind && `syntax-${kind}`, all]);
    end = match.index + all.length;
  }
  if (end < text.length) parts.push(["", text.slice(end)]);
  return parts;
}

/** Converts places in bytes of UTF-8 to places in a string. */
export function byteIndex(text) {
  // Rules are ASCII almost always, and then places are the same.
  if (/^[\u0000-\u007f]*$/.test(text)) return (place) => place;
  const places = [];
  let index = 0;
  for (const character of text) {
    const code = character.codePointAt(0);
    const bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (let i = 0; i < bytes; i += 1) places.push(index);
    index += character.length;
  }
  places.push(index);
  return (place) => places[Math.min(place, places.length - 1)] ?? index;
}

/** Colored nodes of a text. `marks` are `[{ start, end, class, title }]`, which do not overlap. */
export function paintText(text, marks = []) {
  const fragment = document.createDocumentFragment();
  const sorted = [...marks].sort((a, b) => a.start - b.start);
  let at = 0;
  let next = 0;
  const span = (kind, piece, mark) => {
    if (piece === "") return;
    if (!kind && !mark) { fragment.append(piece); return; }
    const element = document.createElement("span");
    element.className = `${kind} ${mark?.class ?? ""}`.trim();
    if (mark?.title) element.title = mark.title;
    element.textContent = piece;
    fragment.append(element);
  };
  for (const [kind, piece] of highlight(text)) {
    const end = at + piece.length;
    let from = at;
    while (from < end) {
      while (next < sorted.length && sorted[next].end <= from) next += 1;
      const mark = sorted[next];
      if (!mark || mark.start >= end) { span(kind, text.slice(from, end)); from = end; continue; }
      if (mark.start > from) { span(kind, text.slice(from, mark.start)); from = mark.start; }
      const to = Math.min(end, mark.end);
      span(kind, text.slice(from, to), mark);
      from = to;
    }
    at = end;
  }
  return fragment;
}

/**
 * An editor for rules: a text area over a colored copy of its text. `marks` is a function that returns marks, and
 * `lines` one that returns a map of line numbers to `{ class, hits, title }`.
 */
export function rulesEditor({ text, onInput, marks, lines }) {
  const paint = h("pre", { class: "paint", "aria-hidden": "true" });
  const gutter = h("div", { class: "gutter", "aria-hidden": "true" });
  const area = h("textarea", { spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off", "aria-label": "Rules" });
  area.value = text;
  const draw = () => {
    const value = area.value;
    paint.replaceChildren(paintText(value, marks()), "\n");
    const known = lines();
    const count = value.split("\n").length;
    gutter.replaceChildren(...Array.from({ length: count }, (_, index) => {
      const line = known.get(index + 1);
      return h("div", { class: line?.class ?? "", title: line?.title ?? null },
        line?.hits ? h("span", { class: `hits ${line.isMissed ? "none" : ""}` }, line.hits) : null, h("span", {}, index + 1));
    }));
    scroll();
  };
  const scroll = () => {
    paint.scrollTop = area.scrollTop;
    paint.scrollLeft = area.scrollLeft;
    gutter.scrollTop = area.scrollTop;
  };
  area.addEventListener("scroll", scroll, { passive: true });
  area.addEventListener("input", () => { onInput(area.value); draw(); });
  area.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    // A new line begins as far in as the line before.
    event.preventDefault();
    const before = area.value.slice(0, area.selectionStart);
    const line = before.slice(before.lastIndexOf("\n") + 1);
    const indent = /^\s*/.exec(line)[0] + (line.trimEnd().endsWith("{") ? "  " : "");
    area.setRangeText(`\n${indent}`, area.selectionStart, area.selectionEnd, "end");
    onInput(area.value);
    draw();
  });
  effect(() => { marks(); lines(); draw(); });
  const box = h("div", { class: "editor" }, gutter, h("div", { class: "stage" }, paint, area));
  box.setText = (value) => { area.value = value; draw(); };
  box.goTo = (line) => {
    const start = area.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    area.focus();
    area.setSelectionRange(start, start);
    area.scrollTop = Math.max(0, (line - 6) * 20);
    scroll();
  };
  return box;
}
