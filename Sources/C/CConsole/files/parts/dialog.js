// Dialogs, menus and copying.
import { append, h, icon } from "../core/dom.js";
import { scope } from "../core/signals.js";
import { needs } from "../api/session.js";
import { visible } from "../api/values.js";
import { say } from "../model/undo.js";

let dialogs = 0;

/** Shows a dialog. `make(close)` returns its body; `actions(close)` its buttons. Resolves when it is closed. */
export function showDialog(title, make, actions) {
  return new Promise((done) => {
    dialogs += 1;
    const id = `dialog-${dialogs}`;
    const element = h("dialog", { "aria-labelledby": id });
    const close = (result) => { element.returnValue = ""; element.close(); finish(result); };
    let isFinished = false;
    const finish = (result) => {
      if (isFinished) return;
      isFinished = true;
      end();
      element.remove();
      done(result);
    };
    const end = scope(() => {
      const form = h("form", { method: "dialog", onsubmit: (event) => {
        event.preventDefault();
        form.querySelector("button.primary:not(:disabled)")?.click();
      } },
      h("h2", { class: "title", id }, title),
      h("div", { class: "body" }, make(close)),
      h("div", { class: "actions" }, actions(close)));
      element.append(form);
    });
    element.addEventListener("close", () => finish(undefined));
    element.addEventListener("click", (event) => { if (event.target === element) close(); });
    document.body.append(element);
    element.showModal();
    (element.querySelector("[autofocus], input, textarea, select") ?? element.querySelector("button"))?.focus();
  });
}

export const button = (text, onclick, properties = {}) =>
  h("button", { type: "button", class: `button ${properties.kind ?? ""}`, onclick, ...properties, kind: null }, text);

/** Asks before something is done. Resolves to whether it should be. `word` must be typed first, if given. */
export function confirmAction({ title, body, action, word = "" }) {
  return showDialog(title, () => [
    h("div", { class: "stack" }, body),
    word ? h("div", { class: "field" }, h("label", { for: "confirm-word" }, `Type ${visible(word)} to confirm`),
      h("input", { class: "input mono", id: "confirm-word", autocomplete: "off", oninput: (event) => {
        event.target.form.querySelector("button.primary").disabled = ![word, visible(word)].includes(event.target.value);
      } })) : null,
  ], (close) => [
    button("Cancel", () => close(false)),
    button(action, () => close(true), { kind: "primary danger", disabled: word !== "" }),
  ]);
}

/** Opens a menu at a button: `[{ label, run, isDanger, icon, needs }]`, with `null` for a line. `needs` is a role. */
export function openMenu(anchor, items) {
  const hasIcons = items.some((item) => item?.icon);
  const menu = h("div", { class: "menu", role: "menu", popover: "auto" });
  for (const item of items) {
    if (!item) { menu.append(h("hr")); continue; }
    menu.append(h("button", {
      type: "button", role: item.isChosen === undefined ? "menuitem" : "menuitemradio",
      "aria-checked": item.isChosen === undefined ? null : String(item.isChosen),
      class: item.isDanger ? "danger" : "", onclick: () => { menu.hidePopover(); item.run(); }, ...(item.needs ? needs(item.needs) : {}),
    }, item.icon || hasIcons ? icon(item.icon) : null, h("span", { class: "grow clip" }, item.label),
    item.isChosen ? icon("check") : null, item.hint ? h("span", { class: "muted small" }, item.hint) : null));
  }
  // A menu is part of the landmark of its button, and of the dialog that makes the rest of the page inert.
  (anchor.closest("dialog, main, header, nav") ?? document.body).append(menu);
  menu.addEventListener("toggle", (event) => {
    if (event.newState !== "closed") return;
    anchor.setAttribute("aria-expanded", "false");
    menu.remove();
    anchor.focus();
  });
  menu.addEventListener("keydown", (event) => {
    const buttons = [...menu.querySelectorAll("button:enabled")];
    const index = buttons.indexOf(document.activeElement);
    if (event.key === "ArrowDown") buttons[(index + 1) % buttons.length].focus();
    else if (event.key === "ArrowUp") buttons[(index - 1 + buttons.length) % buttons.length].focus();
    else return;
    event.preventDefault();
  });
  menu.showPopover();
  const place = anchor.getBoundingClientRect();
  const size = menu.getBoundingClientRect();
  menu.style.left = `${Math.max(8, Math.min(place.left, innerWidth - size.width - 8))}px`;
  menu.style.top = `${place.bottom + size.height + 8 < innerHeight ? place.bottom + 4 : Math.max(8, place.top - size.height - 4)}px`;
  anchor.setAttribute("aria-expanded", "true");
  menu.querySelector("button:enabled")?.focus();
}

/** Copies a text and says so. */
export async function copyText(text, what = "Copied") {
  try {
    await navigator.clipboard.writeText(text);
    say(what);
  } catch {
    // The clipboard needs a secure context. Show the text so that it can be copied by hand.
    showDialog("Copy this text", () => h("textarea", { class: "area mono", rows: 8, readonly: true, value: text,
      ref: (area) => setTimeout(() => area.select(), 0) }), (close) => [button("Done", () => close())]);
  }
}

/** A block of code with a button that copies it. `text` may be a function. */
export function codeBox(text, label = "Copy") {
  const read = () => typeof text === "function" ? text() : text;
  return h("div", { class: "code-box" },
    h("pre", { class: "code", tabindex: "0", "aria-label": "Code" }, typeof text === "function" ? () => text() : text),
    h("button", { type: "button", class: "icon-button", title: label, "aria-label": label,
      onclick: () => copyText(read()) }, icon("copy")));
}

/** A tab list. `tabs` are `[name, label]`; `chosen` is a signal of names. */
export function tabList(label, tabs, chosen, choose = (name) => chosen.set(name)) {
  const list = h("div", { class: "segments", role: "tablist", "aria-label": label });
  for (const [name, text] of tabs) {
    append(list, h("button", {
      type: "button", role: "tab", "aria-selected": () => String(chosen() === name),
      tabindex: () => chosen() === name ? "0" : "-1", onclick: () => choose(name),
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = (event.currentTarget.parentElement.children.length + tabs.findIndex(([each]) => each === name) + step)
          % tabs.length;
        choose(tabs[next][0]);
        list.children[next].focus();
      },
    }, text));
  }
  return list;
}

/** Why something failed, in a box. */
export function errorBox(error, retry) {
  return h("div", { class: "empty", role: "alert" },
    h("h2", {}, error.isDenied ? "Not allowed" : "This did not work"),
    h("p", { class: "value" }, visible(error.message)),
    retry ? button("Try again", retry) : null);
}
