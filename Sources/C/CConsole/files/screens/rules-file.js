// Saves the rules in the editor to their file, which needs the secret in the address that the server printed.
import { h } from "../core/dom.js";
import { signal } from "../core/signals.js";
import { startKey } from "../core/address.js";
import { call, hearthURL } from "../api/client.js";
import { visible } from "../api/values.js";
import { say } from "../model/undo.js";
import { button, showDialog } from "../parts/dialog.js";

/** A button that saves `text()` to the file of the rules, and then calls `saved`. Nothing if the page has no secret. */
export function saveRulesButton(text, saved) {
  if (!startKey) return null;
  const file = signal(null);
  const headers = { "X-Hearth-Key": startKey };
  const load = () => call("GET", hearthURL("rulesFile"), { headers }).then((found) => file.set(found), () => file.set(null));
  load();
  async function save() {
    try {
      const { hash } = await call("PUT", hearthURL("rulesFile"), { headers, body: { text: text(), hash: file.peek().hash } });
      file.update((known) => ({ ...known, text: text(), hash }));
      say(`Saved ${file.peek().path}`);
      saved();
    } catch (error) {
      await showDialog("The file is not saved", () => h("p", { class: "value" }, visible(error.message)), (close) => [button("Close", () => close(), { kind: "primary" })]);
      load();
    }
  }
  return () => file() ? button("Save to the file", save, { title: file().path }) : null;
}
