// The screen Rules of a production console: the rules in force. The server reads them from their file, so the page does
// not change them.
import { h } from "../core/dom.js";
import { signal } from "../core/signals.js";
import { call, hearthURL } from "../api/client.js";
import { codeBox, errorBox } from "../parts/dialog.js";

export function rulesInForceScreen() {
  const found = signal(null);
  const failure = signal(null);
  async function load() {
    try { found.set(await call("GET", hearthURL("rules"))); failure.set(null); } catch (error) { failure.set(error); }
  }
  load();
  return h("div", { class: "scroll" },
    h("div", { class: "head" }, h("h1", {}, "Rules")),
    h("div", { class: "pad stack" }, () => failure() ? errorBox(failure(), load) : !found() ? h("div", { class: "busy" })
      : found().problem ? h("p", { class: "bad value" }, found().problem)
        : found().text === undefined ? h("p", {}, "No rules are in force: only administrators have access to the documents.")
          : [h("p", { class: "muted" }, found().isDeployed ? ["The rules in force. Replace them with ", h("code", {}, "hearth cluster deploy"), "."]
            : "The rules in force. The server reads them again when their file changes."), codeBox(found().text, "Copy the rules")]));
}
