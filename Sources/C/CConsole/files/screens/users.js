// The screen Users: the accounts of the project.
import { h, icon, iconButton } from "../core/dom.js";
import { effect, signal, untracked } from "../core/signals.js";
import { go, place } from "../core/address.js";
import { command } from "../core/keys.js";
import { call, projectURL, viewer } from "../api/client.js";
import { hasRole, isProduction, needs, roleReason } from "../api/session.js";
import { agoText, numberText, timeText, visible } from "../api/values.js";
import { say } from "../model/undo.js";
import { button, confirmAction, copyText, errorBox, showDialog } from "../parts/dialog.js";

const usersPerPage = 500;
const claimsMax = 1000;

export function usersScreen() {
  const users = signal(null);
  const codes = signal([]);
  const filter = signal("");
  const failure = signal(null);
  let pageToken = "";
  const base = `${projectURL("/v1")}/accounts`;
  const emulator = projectURL("/emulator/v1");

  async function load(isMore = false) {
    try {
      const query = new URLSearchParams({ maxResults: usersPerPage });
      if (isMore && pageToken) query.set("nextPageToken", pageToken);
      const page = await call("GET", `${base}:batchGet?${query}`);
      pageToken = page.nextPageToken ?? "";
      users.set([...(isMore ? users.peek() : []), ...(page.users ?? [])]);
      failure.set(null);
      // A production server mails the codes, and shows them to nobody.
      if (isProduction) return;
      const [mails, phones] = await Promise.all([call("GET", `${emulator}/oobCodes`), call("GET", `${emulator}/verificationCodes`)]);
      codes.set([...(mails.oobCodes ?? []), ...(phones.verificationCodes ?? [])].reverse());
    } catch (error) { failure.set(error); }
  }
  load();

  const chosen = () => place().path[0] ?? "";
  const choose = (uid) => go({ screen: "users", path: uid ? [uid] : [] }, { replace: true });
  async function change(uid, fields, text) {
    try {
      await call("POST", `${base}:update`, { body: { localId: uid, ...fields } });
      say(text);
      await load();
    } catch (error) { say(error.message, { isError: true }); }
  }

  async function create() {
    const problem = signal("");
    const inputs = {};
    const field = (id, text, properties) => h("div", { class: "field" }, h("label", { for: `user-${id}` }, text),
      inputs[id] = h("input", { class: "input", id: `user-${id}`, autocomplete: "off", ...properties }));
    const made = await showDialog("New user", () => [
      field("email", "Email", { type: "email", placeholder: "ann@example.com" }), field("password", "Password, 6 characters or more", { type: "text" }),
      field("name", "Name", {}), field("uid", "User id, or nothing for a random one", { class: "input mono" }),
      h("p", { class: "problem", role: "alert" }, () => problem()),
    ], (close) => [button("Cancel", () => close()), button("Create", async () => {
      const body = {};
      if (inputs.email.value) body.email = inputs.email.value.trim();
      if (inputs.password.value) body.password = inputs.password.value;
      if (inputs.name.value) body.displayName = inputs.name.value;
      if (inputs.uid.value) body.localId = inputs.uid.value.trim();
      try { close((await call("POST", base, { body })).localId); } catch (error) { problem.set(error.message); }
    }, { kind: "primary" })]);
    if (made) { await load(); choose(made); say("Created the user"); }
  }
  command({ label: "New user", keys: "N", group: "Users", when: () => hasRole("editor"), run: create });
  command({ label: "Filter users", keys: "/", group: "Users", run: () => document.querySelector(".user-filter")?.focus() });

  const matches = (user) => [user.localId, user.email, user.displayName, user.phoneNumber].some((text) =>
    text?.toLowerCase().includes(filter().toLowerCase()));

  return h("div", { class: "fill" },
    h("div", { class: "head" }, h("h1", {}, "Users"),
      h("span", { class: "tag" }, () => users() ? `${numberText(users().length)}${pageToken ? "+" : ""}` : "…"),
      h("input", { class: "input user-filter", type: "search", placeholder: "Filter by email, name or id", "aria-label": "Filter users",
        style: { "max-width": "280px" }, oninput: (event) => filter.set(event.target.value) }),
      h("span", { class: "grow" }), button("Refresh", () => load(), { kind: "quiet" }),
      h("button", { type: "button", class: "button primary", onclick: create, title: "New user (N)", ...needs("editor") }, icon("plus"), "User")),
    () => failure() ? errorBox(failure(), load) : !users() ? h("div", { class: "busy" })
      : users().length === 0 ? h("div", { class: "empty" }, h("h2", {}, "No users yet"),
        h("p", {}, "Accounts appear here when an app signs somebody up, or when you create one."), button("New user", create, { kind: "primary", ...needs("editor") }))
        : h("div", { class: "split", style: { "grid-template-columns": chosen() && innerWidth > 680 ? "minmax(0, 1fr) 400px" : "minmax(0, 1fr)" } },
          h("section", { "aria-label": "Accounts" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "List of accounts" }, h("table", {},
            h("thead", {}, h("tr", {}, ["Email or phone", "Name", "Providers", "Last sign-in", "User id"].map((text) => h("th", { scope: "col" }, text)))),
            h("tbody", {}, () => users().filter(matches).map((user) => h("tr", { class: "pick", "aria-selected": () => String(chosen() === user.localId),
              onclick: () => choose(user.localId) },
            h("td", { class: "value" }, h("button", { type: "button", class: "text-link", style: { border: 0, background: "none", padding: 0, cursor: "pointer" } },
              visible(user.email ?? user.phoneNumber ?? "guest"))),
            h("td", { class: "value" }, visible(user.displayName ?? "")),
            h("td", {}, h("span", { class: "chips" }, (user.providerUserInfo ?? []).map((each) => h("span", { class: "tag" }, each.providerId)),
              user.providerUserInfo?.length ? null : h("span", { class: "tag" }, "anonymous"), user.disabled ? h("span", { class: "tag bad" }, "disabled") : null)),
            h("td", {}, user.lastLoginAt ? agoText(new Date(Number(user.lastLoginAt)).toISOString()) : h("span", { class: "muted" }, "never")),
            h("td", { class: "mono value" }, visible(user.localId)))))),
          () => pageToken && users() ? button("Load more", () => load(true), { kind: "quiet" }) : null,
          () => codes().length > 0 ? h("div", { class: "pad stack" }, h("h3", {}, "Codes that would have been sent"),
            codes().slice(0, 10).map((code) => h("div", { class: "row small" }, h("span", { class: "tag" }, code.requestType ?? "sign-in"),
              h("span", { class: "value" }, code.email ?? code.phoneNumber), h("span", { class: "mono" }, code.oobCode ? `${code.oobCode.slice(0, 12)}…` : code.code),
              iconButton("copy", "Copy the link or code", () => copyText(code.oobLink ?? code.code, "Copied"))))) : null)),
          () => {
            const user = users().find((each) => each.localId === chosen());
            return user ? h("aside", { "aria-label": "Account" }, account(user)) : null;
          }));

  /** A token of a user, or `null` after a message. */
  async function tokenOf(user) {
    const claims = JSON.parse(user.customAttributes ?? "{}");
    try { return await call("POST", "/hearth/v1/tokens", { body: { uid: user.localId, claims } }); } catch (error) {
      say(error.message, { isError: true });
      return null;
    }
  }

  function account(user) {
    const claims = signal(user.customAttributes ?? "{}");
    const problem = signal("");
    const validate = (text) => {
      try {
        const parsed = JSON.parse(text || "{}");
        if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed)) throw new Error("the claims must be an object");
        problem.set(new TextEncoder().encode(text).length > claimsMax ? `The claims can have ${numberText(claimsMax)} bytes.` : "");
      } catch (error) { problem.set(`The claims are not valid: ${error.message}`); }
    };
    effect(() => { const text = claims(); untracked(() => validate(text)); });
    return h("div", { class: "scroll" }, h("div", { class: "head" },
      h("h2", { class: "grow clip value" }, visible(user.email ?? user.displayName ?? user.phoneNumber ?? "guest")),
      iconButton("close", "Close", () => choose(""))),
    h("div", { class: "pad stack" },
      h("dl", { class: "facts" },
        h("dt", {}, "user id"), h("dd", { class: "mono value row" }, h("span", {}, visible(user.localId)), iconButton("copy", "Copy the user id", () => copyText(user.localId))),
        h("dt", {}, "email"), h("dd", { class: "value" }, user.email ? `${visible(user.email)}, ${user.emailVerified ? "verified" : "not verified"}` : "none"),
        h("dt", {}, "created"), h("dd", {}, user.createdAt ? timeText(new Date(Number(user.createdAt)).toISOString()) : ""),
        h("dt", {}, "last sign-in"), h("dd", {}, user.lastLoginAt ? timeText(new Date(Number(user.lastLoginAt)).toISOString()) : "never")),
      h("div", { class: "row wrap" },
        button("View data as this user", async () => {
          const made = await tokenOf(user);
          if (!made) return;
          viewer.set({ uid: user.localId, claims: JSON.parse(user.customAttributes ?? "{}"), token: made.idToken });
          go({ screen: "data", path: [] });
        }, needs("editor")),
        button("Copy an ID token", async () => {
          const made = await tokenOf(user);
          if (made) copyText(made.idToken, "Token copied; it is valid for an hour");
        }, needs("editor"))),
      h("div", { class: "field" }, h("label", { for: "claims" }, "Claims, as JSON"),
        h("textarea", { class: "area mono", id: "claims", rows: 4, spellcheck: "false", value: user.customAttributes ?? "{}", readonly: !hasRole("editor"), title: roleReason("editor") || null,
          oninput: (event) => claims.set(event.target.value) }),
        h("p", { class: "problem", role: "alert" }, () => problem()),
        h("div", {}, button("Save the claims", () => { if (!problem.peek()) change(user.localId, { customAttributes: claims.peek() }, "Saved the claims"); }, needs("editor")))),
      h("div", { class: "row wrap" },
        button(user.emailVerified ? "Mark email as not verified" : "Mark email as verified", () => change(user.localId, { emailVerified: !user.emailVerified }, "Changed the user"),
          { disabled: !user.email, ...needs("editor") }),
        button(user.disabled ? "Enable" : "Disable", () => change(user.localId, { disableUser: !user.disabled }, user.disabled ? "Enabled the user" : "Disabled the user"), needs("editor")),
        button("Set a password…", async () => {
          const input = h("input", { class: "input", id: "new-password", autocomplete: "new-password" });
          const text = await showDialog("Set a password", () => h("div", { class: "field" }, h("label", { for: "new-password" }, "Password, 6 characters or more"), input),
            (close) => [button("Cancel", () => close()), button("Set the password", () => close(input.value), { kind: "primary" })]);
          if (text) change(user.localId, { password: text }, "Set the password");
        }, needs("editor")),
        button("Delete…", async () => {
          const isSure = await confirmAction({ title: "Delete this user?", action: "Delete the user",
            body: h("p", {}, "This deletes the account ", h("strong", { class: "value" }, visible(user.email ?? user.localId)), ", not its documents. It cannot be undone.") });
          if (!isSure) return;
          try {
            await call("POST", `${base}:delete`, { body: { localId: user.localId } });
            choose("");
            say("Deleted the user");
            load();
          } catch (error) { say(error.message, { isError: true }); }
        }, { kind: "danger", ...needs("editor") }))));
  }
}
