// Commands: one registry makes the keys, the palette and the list of all keys.
import { onEnd } from "./signals.js";

const commands = [];

/** The commands that exist now, the newest first. */
export function allCommands() { return [...commands].reverse().filter((command) => command.when?.() ?? true); }

/** Adds a command until the current owner ends: `{ label, keys, run, when, group }`. */
export function command(entry) {
  commands.push(entry);
  onEnd(() => commands.splice(commands.indexOf(entry), 1));
}

const isApple = /Mac|iP(hone|ad|od)/.test(navigator.platform);

/** Keys for people: `Ctrl K`, or `⌘ K` on machines of Apple. */
export function keysText(keys) { return isApple ? keys.replaceAll("Ctrl", "⌘").replaceAll("Alt", "⌥") : keys; }

function isInText(target) {
  return target instanceof HTMLElement
    && (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName)
      || (target.tagName === "INPUT" && !/^(checkbox|radio|button)$/.test(target.type)));
}

function textOf(event) {
  const parts = [];
  if (event.ctrlKey || event.metaKey) parts.push("Ctrl");
  if (event.altKey) parts.push("Alt");
  if (event.shiftKey && event.key.length > 1) parts.push("Shift");
  if (event.shiftKey && /^[a-z]$/i.test(event.key)) parts.push("Shift");
  parts.push(event.key.length === 1 ? event.key.toUpperCase() : event.key);
  return parts.join(" ");
}

let first = "";
addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  const text = textOf(event);
  const isPlain = !/^(Ctrl|Alt)/.test(text) && !/^(Escape|F\d+)$/.test(text);
  if (isPlain && (isInText(event.target) || document.querySelector("dialog[open]"))) return;
  const both = first ? `${first} ${text}` : text;
  first = "";
  const found = allCommands().find((entry) => entry.keys === both && !(entry.isForPage && isInText(event.target)));
  if (found) {
    event.preventDefault();
    found.run();
  } else if (text === "G") {
    first = "G";
    setTimeout(() => { first = ""; }, 1200);
  }
});
