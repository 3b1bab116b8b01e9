// Elements, from functions. Text is only ever set as text: there is no way to pass markup.
import { effect, untracked } from "./signals.js";

const svgSpace = "http://www.w3.org/2000/svg";

function setProperty(element, name, value) {
  if (name === "class") element.setAttribute("class", value ?? "");
  else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
  else if (["value", "checked", "disabled", "hidden", "indeterminate", "selected", "open"].includes(name)) {
    element[name] = value;
  } else if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "ref") value(element);
    else if (typeof value === "function") effect(() => setProperty(element, name, value()));
    else setProperty(element, name, value);
  }
  for (const child of children) append(element, child);
  return element;
}

/** Makes an element. A function as property or child is an effect. */
export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** Makes an element of a drawing. */
export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(svgSpace, tag), properties, children);
}

/** Adds a child: a node, a text, a list of children, or a function that returns one and runs again on changes. */
export function append(parent, child) {
  if (child === null || child === undefined || child === false || child === true) return;
  if (Array.isArray(child)) for (const each of child) append(parent, each);
  else if (child instanceof Node) parent.append(child);
  else if (typeof child === "function") region(parent, child);
  else parent.append(String(child));
}

function region(parent, make) {
  const [start, end] = [document.createComment(""), document.createComment("")];
  parent.append(start, end);
  effect(() => {
    const made = document.createDocumentFragment();
    const child = make();
    untracked(() => append(made, child));
    while (start.nextSibling !== end) start.nextSibling.remove();
    end.before(made);
  });
}

const shapes = {
  data: ["M2.5 4c0-1.1 2.5-2 5.5-2s5.5.9 5.5 2-2.5 2-5.5 2-5.5-.9-5.5-2z", "M2.5 4v8c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2V4",
    "M2.5 8c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2"],
  query: ["M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10z", "M10.6 10.6 14 14"],
  why: ["M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12z", "M6.2 6.4C6.4 5 9.8 4.9 9.8 6.8 9.8 8 8 8 8 9.3", "M8 11.4v.1"],
  rules: ["M8 1.5 2.5 3.5v4c0 3.4 2.3 5.9 5.5 7 3.2-1.1 5.5-3.6 5.5-7v-4z", "m5.6 8 1.7 1.7 3.1-3.4"],
  users: ["M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z", "M1.5 13.5c.3-2.5 2-4 4.5-4s4.2 1.5 4.5 4",
    "M10.5 2.8a2.4 2.4 0 0 1 0 4.5", "M12 9.9c1.5.5 2.3 1.8 2.5 3.6"],
  files: ["M1.5 4.5v8h13v-7H8L6.5 3.5h-5z"],
  health: ["M1.5 8.5h3l1.8-5 3 9.5 2-4.5h3.2"],
  plus: ["M8 3v10", "M3 8h10"], close: ["m4 4 8 8", "m12 4-8 8"], down: ["m4 6 4 4 4-4"], right: ["m6 4 4 4-4 4"],
  left: ["m10 4-4 4 4 4"],
  copy: ["M5.5 5.5h8v8h-8z", "M10.5 5.5v-3h-8v8h3"], trash: ["M2.5 4.5h11", "M6 4.5v-2h4v2", "m4 4.5.7 9h6.6l.7-9"],
  more: ["M3.5 7.6v.8", "M8 7.6v.8", "M12.5 7.6v.8"], sun: ["M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6z",
    "M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1"],
  server: ["M2.5 2.5h11v4.5h-11z", "M2.5 9h11v4.5h-11z", "M5 4.75h.01M5 11.25h.01"],
  lock: ["M4 7.5h8v6H4z", "M5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5"], unlock: ["M4 7.5h8v6H4z", "M5.5 7.5V5a2.5 2.5 0 0 1 4.8-.9"],
  leave: ["M9.5 2.5h-6v11h6", "M7 8h7M11.5 5.5 14 8l-2.5 2.5"],
  moon: ["M13.5 9.5A6 6 0 1 1 6.5 2.5a5 5 0 0 0 7 7z"], check: ["m3 8.5 3.2 3.2L13 5"],
  table: ["M2 3h12v10H2z", "M2 6.5h12", "M6 3v10"], columns: ["M2 3h12v10H2z", "M6 3v10", "M10 3v10"],
  play: ["M4.5 3v10l8-5z"], undo: ["M5.5 3 2.5 6l3 3", "M2.5 6h7a4 4 0 0 1 0 8H6"], upload: ["M8 11V2.5", "m4.5 5.5 3.5-3.5 3.5 3.5",
    "M2.5 10.5v3h11v-3"], download: ["M8 2.5V11", "m4.5 7.5L8 11l3.5-3.5", "M2.5 10.5v3h11v-3"],
  flame: ["M8 1.5c.6 3 4.5 4.4 4.5 8.3a4.5 4.5 0 0 1-9 0c0-2 1.2-3.3 2-4.6.1 1.9 1 2.6 1.7 2.7C8.4 6 7.4 3.9 8 1.5z"],
  file: ["M3.5 1.5h6l3 3v10h-9z", "M9.5 1.5v3h3"], link: ["M6 4.5H3v8.5h8.5V10", "M9 2.5h4.5V7", "M13.5 2.5 7.5 8.5"],
  clock: ["M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12z", "M8 4.8V8l2.2 1.6"],
  keyboard: ["M1.5 4h13v8h-13z", "M4 6.5h.01M6.5 6.5h.01M9 6.5h.01M11.5 6.5h.01M5 9.5h6"],
};

/** A drawing of 16 pixels. It is decoration: the text beside it, or the label of its button, says what it means. */
export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" },
    ...(shapes[name] ?? []).map((d) => svg("path", { d })));
}

/** A button with an icon only. */
export function iconButton(name, label, onclick, properties) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...properties },
    icon(name));
}
