// The screen Server of a production console: the nodes of a cluster, keys, operators, backups, databases, and the configuration.
import { h } from "../core/dom.js";
import { onEnd, signal } from "../core/signals.js";
import { call, hearthURL, send } from "../api/client.js";
import { hasRole, needs, session } from "../api/session.js";
import { agoText, bytesText, numberText, visible } from "../api/values.js";
import { say } from "../model/undo.js";
import { button, codeBox, confirmAction, showDialog } from "../parts/dialog.js";
import { parseMetrics } from "./health.js";

const reporting = (work) => async () => { try { await work(); } catch (error) { say(error.message, { isError: true }); } };
const dateOfSeconds = (seconds) => new Date(seconds * 1000).toISOString();

/** A section with a title, a button, and a table or a text. */
function serverSection(title, action, body) {
  return h("section", { class: "stack" }, h("div", { class: "row" }, h("h2", {}, title), h("span", { class: "grow" }), action), body);
}

function listTable(label, heads, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, h("table", {},
    h("thead", {}, h("tr", {}, heads.map((text) => text ? h("th", { scope: "col" }, text) : h("td", {})))),
    h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell) => h("td", { class: "value" }, cell)))))));
}

function keysSection() {
  const keys = signal(null);
  const load = reporting(async () => keys.set((await call("GET", "/hearth/v1/keys")).keys ?? []));
  load();
  async function create() {
    const problem = signal("");
    const name = h("input", { class: "input mono", id: "key-name", autocomplete: "off" });
    const url = h("input", { class: "input mono", id: "key-url", autocomplete: "off", placeholder: "db.example.com, with https" });
    const file = await showDialog("New service key", () => [
      h("p", { class: "muted" }, "A program with the key file has the rights of an administrator. The private key exists only in this file."),
      h("div", { class: "field" }, h("label", { for: "key-name" }, "Name"), name),
      h("div", { class: "field" }, h("label", { for: "key-url" }, "URL at which the program reaches the server"), url),
      h("p", { class: "problem", role: "alert" }, () => problem()),
    ], (close) => [button("Cancel", () => close()), button("Create the key", async () => {
      const written = URL.canParse(url.value.trim()) ? new URL(url.value.trim()) : null;
      if (!["http:", "https:"].includes(written?.protocol)) { problem.set("Enter a whole URL, which begins with https."); return; }
      try { close(await (await send("POST", "/hearth/v1/keys", { body: { name: name.value.trim(), url: url.value.trim().replace(/\/+$/, "") } })).text()); } catch (error) { problem.set(error.message); }
    }, { kind: "primary" })]);
    if (!file) return;
    load();
    const link = h("a", { class: "button primary", download: `${name.value.trim()}.json`, href: URL.createObjectURL(new Blob([file], { type: "application/json" })) }, "Save the file");
    await showDialog("The key file", () => h("p", {}, "Save it now: the server does not keep the private key."), (close) => [button("Close", () => close()), link]);
    URL.revokeObjectURL(link.href);
  }
  async function revoke(key) {
    const isSure = await confirmAction({ title: "Revoke this key?", action: "Revoke the key", word: key.name,
      body: h("p", {}, "Programs with the key ", h("strong", { class: "value" }, visible(key.name)), " lose their access at once.") });
    if (isSure) await reporting(async () => { await call("DELETE", `/hearth/v1/keys/${encodeURIComponent(key.name)}`); say("Revoked the key"); load(); })();
  }
  return serverSection("Service keys", button("New key…", create, needs("owner")), () => !keys() ? h("div", { class: "busy" })
    : keys().length === 0 ? h("p", { class: "muted" }, "No program has a key.")
      : listTable("Service keys", ["Name", "Key ID", "Created", ""], keys().map((key) => [visible(key.name), h("span", { class: "mono" }, visible(key.keyId)),
        agoText(dateOfSeconds(Number(key.createdSeconds))), hasRole("owner") ? button("Revoke…", () => revoke(key), { kind: "danger", "aria-label": `Revoke the key ${key.name}` }) : null])));
}

function operatorsSection() {
  const people = signal(null);
  const load = reporting(async () => people.set((await call("GET", "/hearth/v1/operators")).operators ?? []));
  load();
  const roleChoice = (id, chosen) => h("select", { class: "select", id }, ["viewer", "editor", "owner"].map((role) => h("option", { value: role, selected: role === chosen }, role)));
  async function add() {
    const problem = signal("");
    const name = h("input", { class: "input", id: "operator-name", autocomplete: "off" });
    const password = h("input", { class: "input", id: "operator-password", type: "password", autocomplete: "new-password" });
    const role = roleChoice("operator-role", "viewer");
    const isMade = await showDialog("New operator", () => [
      h("div", { class: "field" }, h("label", { for: "operator-name" }, "Name"), name),
      h("div", { class: "field" }, h("label", { for: "operator-role" }, "Role"), role),
      h("div", { class: "field" }, h("label", { for: "operator-password" }, "Password, 10 characters or more"), password),
      h("p", { class: "problem", role: "alert" }, () => problem()),
    ], (close) => [button("Cancel", () => close()), button("Add the operator", async () => {
      try { await call("POST", "/hearth/v1/operators", { body: { name: name.value.trim(), role: role.value, password: password.value } }); close(true); } catch (error) { problem.set(error.message); }
    }, { kind: "primary" })]);
    if (isMade) { say("Added the operator"); load(); }
  }
  async function change(person) {
    const problem = signal("");
    const password = h("input", { class: "input", id: "operator-password", type: "password", autocomplete: "new-password" });
    const role = roleChoice("operator-role", person.role);
    const isDone = await showDialog(`Change ${visible(person.name)}`, () => [
      h("p", { class: "muted" }, "A change ends the sessions of the operator."),
      h("div", { class: "field" }, h("label", { for: "operator-role" }, "Role"), role),
      h("div", { class: "field" }, h("label", { for: "operator-password" }, "New password, or nothing"), password),
      h("p", { class: "problem", role: "alert" }, () => problem()),
    ], (close) => [button("Cancel", () => close()), button("Save", async () => {
      const body = { ...(role.value !== person.role ? { role: role.value } : {}), ...(password.value ? { password: password.value } : {}) };
      if (Object.keys(body).length === 0) { close(); return; }
      try { await call("PATCH", `/hearth/v1/operators/${encodeURIComponent(person.name)}`, { body }); close(true); } catch (error) { problem.set(error.message); }
    }, { kind: "primary" })]);
    if (isDone) { say("Changed the operator"); load(); }
  }
  async function remove(person) {
    const isSure = await confirmAction({ title: "Remove this operator?", action: "Remove the operator",
      body: h("p", {}, h("strong", { class: "value" }, visible(person.name)), " is signed out and cannot sign in again.") });
    if (isSure) await reporting(async () => { await call("DELETE", `/hearth/v1/operators/${encodeURIComponent(person.name)}`); say("Removed the operator"); load(); })();
  }
  return serverSection("Operators", button("New operator…", add, needs("owner")), () => !people() ? h("div", { class: "busy" })
    : listTable("Operators", ["Name", "Role", "Added", ""], people().map((person) => [
      [visible(person.name), person.name === session()?.name ? h("span", { class: "muted" }, " (you)") : null], person.role, agoText(dateOfSeconds(Number(person.createdSeconds))),
      hasRole("owner") ? h("div", { class: "row" }, button("Change…", () => change(person), { "aria-label": `Change ${person.name}` }),
        button("Remove…", () => remove(person), { kind: "danger", "aria-label": `Remove ${person.name}` })) : null])));
}

function backupsSection() {
  const state = signal(null);
  let timer = 0;
  async function load() {
    clearTimeout(timer);
    try { state.set(await call("GET", "/hearth/v1/backups")); } catch (error) { state.set({ reason: error.message }); }
    // A backup that is under way is followed until it ends.
    if (state.peek().busy) timer = setTimeout(load, 2000);
  }
  load();
  onEnd(() => clearTimeout(timer));
  const create = reporting(async () => { await call("POST", "/hearth/v1/backups", { body: {} }); say("The backup began"); timer = setTimeout(load, 500); });
  const last = ({ time, failure }) => failure ? h("p", { class: "bad value" }, `The last attempt, ${agoText(time)}, failed: ${visible(failure)}`) : h("p", {}, `The last attempt, ${agoText(time)}, succeeded.`);
  return serverSection("Backups", () => state()?.place ? button(state().busy ? "Backup under way…" : "Back up now", create, { disabled: state().busy, ...needs("owner") }) : null,
    () => !state() ? h("div", { class: "busy" }) : state().reason ? h("p", { class: "muted" }, state().reason) : h("div", { class: "stack" },
      h("p", {}, "Place: ", h("span", { class: "mono value" }, visible(state().place))), state().last ? last(state().last) : null,
      state().problem ? h("p", { class: "bad value" }, visible(state().problem)) : null,
      (state().backups ?? []).length === 0 ? h("p", { class: "muted" }, "No backups yet.")
        : listTable("List of backups", ["Name", "Made", "Size"], state().backups.slice(-50).reverse().map((each) => [h("span", { class: "mono" }, visible(each.name)), agoText(each.time), bytesText(each.size)]))));
}

/** The nodes of a cluster. Nothing at a server alone. */
function clusterSection() {
  const found = signal(null);
  let timer = 0;
  let isOver = false;
  const isAlone = (cluster) => cluster?.nodes.length === 0 && !cluster.problem;
  async function load() {
    if (!document.hidden) {
      try { found.set(await call("GET", "/hearth/v1/cluster")); } catch { /* The banner of the frame says that the server is gone. */ }
    }
    if (!isOver && !isAlone(found.peek())) timer = setTimeout(load, 2000);
  }
  load();
  onEnd(() => { isOver = true; clearTimeout(timer); });
  const kinds = { live: "good", silent: "warn", starting: "warn", dead: "bad" };
  return () => !found() || isAlone(found()) ? null : serverSection("Cluster", null, h("div", { class: "stack" },
    found().problem ? h("p", { class: "bad value" }, visible(found().problem)) : null,
    listTable("Nodes", ["Node", "Address", "State", "Role", "Version", "Started"], found().nodes.map((node) => [node.node,
      h("span", { class: "mono" }, visible(node.address)), h("span", { class: `tag ${kinds[node.state] ?? "warn"}` }, node.state),
      [node.isOwner ? "owner" : "follower", node.isDraining ? ", draining" : ""], visible(node.software), agoText(node.started)])),
    found().epoch === undefined ? null : h("p", { class: "muted" }, `Epoch ${numberText(found().epoch)}. `
      + `PostgreSQL has ${numberText(found().entries)} ${found().entries === 1 ? "entry" : "entries"} of the log${found().logBytes === undefined ? "" : `, ${bytesText(found().logBytes)}`}.`)));
}

function databasesSection() {
  const rows = signal([]);
  const indexes = signal([]);
  let timer = 0;
  let isOver = false;
  async function load() {
    if (!document.hidden) {
      try {
        const metrics = parseMetrics(await (await send("GET", "/metrics")).text());
        const value = (name, labels) => metrics.get(name)?.find((each) => each.labels.database === labels.database)?.value ?? 0;
        rows.set((metrics.get("hearth_database_used_bytes") ?? []).map(({ labels, value: used }) => ({
          name: labels.database, used, file: value("hearth_database_file_bytes", labels), limit: value("hearth_database_limit_bytes", labels) })));
        indexes.set((await call("GET", hearthURL("indexes"))).indexes ?? []);
      } catch { /* The banner of the frame says that the server is gone. */ }
    }
    if (!isOver) timer = setTimeout(load, indexes.peek().some((each) => each.state !== "ready") ? 2000 : 15_000);
  }
  load();
  onEnd(() => { isOver = true; clearTimeout(timer); });
  return serverSection("Databases and indexes", null, () => h("div", { class: "stack" },
    rows().length === 0 ? h("p", { class: "muted" }, "No database is open.") : listTable("Databases", ["Database", "Used", "File", "Limit"],
      rows().map((each) => [visible(each.name), bytesText(each.used), bytesText(each.file), bytesText(each.limit)])),
    indexes().length === 0 ? null : listTable("Indexes", ["Index", "State", "Documents"], indexes().map((each) => [h("span", { class: "mono" }, visible(each.index)),
      h("span", { class: `tag ${each.state === "ready" ? "good" : "warn"}` }, each.state), numberText(each.documents)]))));
}

function configurationSection() {
  const found = signal(null);
  call("GET", "/hearth/v1/configuration").then((map) => found.set(map), (error) => found.set({ reason: error.message }));
  return serverSection("Configuration", null, () => !found() ? h("div", { class: "busy" }) : found().reason ? h("p", { class: "muted" }, found().reason)
    : codeBox(JSON.stringify(found(), null, 2), "Copy the configuration"));
}

export function serverScreen() {
  return h("div", { class: "scroll" }, h("div", { class: "head" }, h("h1", {}, "Server")),
    h("div", { class: "pad stack", style: { gap: "24px" } }, clusterSection(), databasesSection(), backupsSection(), keysSection(), operatorsSection(), configurationSection()));
}
