// The frame: screens at the left, the bar above, the state below.
import { append, h, icon, iconButton } from "./core/dom.js";
import { computed, effect, scope, signal, untracked } from "./core/signals.js";
import { formatAddress, go, isPast, place, screens } from "./core/address.js";
import { command, keysText } from "./core/keys.js";
import { call, isOnline, viewer } from "./api/client.js";
import { hasRole, isProduction, isUnlocked, session, setUnlocked, signOut } from "./api/session.js";
import { isLive, liveState, seenCommits, startFeed } from "./api/feed.js";
import { numberText } from "./api/values.js";
import { notice, say, steps, undo } from "./model/undo.js";
import { openKeys, openPalette } from "./parts/palette.js";
import { button, errorBox, openMenu, showDialog } from "./parts/dialog.js";
import { isTimeBarOpen, timeBar } from "./screens/past.js";
import { dataScreen } from "./screens/data.js";
import { queryScreen } from "./screens/query.js";
import { whyScreen } from "./screens/why.js";
import { rulesScreen } from "./screens/rules.js";
import { usersScreen } from "./screens/users.js";
import { filesScreen } from "./screens/files.js";
import { healthScreen } from "./screens/health.js";
import { rulesInForceScreen } from "./screens/rules-in-force.js";
import { serverScreen } from "./screens/server.js";
import { signInPage } from "./screens/sign-in.js";

const makers = {
  data: dataScreen, query: queryScreen, why: whyScreen, rules: isProduction ? rulesInForceScreen : rulesScreen, users: usersScreen, files: filesScreen,
  health: healthScreen, server: serverScreen,
};
const labels = { data: "Data", query: "Query", why: "Why", rules: "Rules", users: "Users", files: "Files", health: "Health", server: "Server" };
const letters = { data: "D", query: "Q", why: "W", rules: "R", users: "U", files: "F", health: "H", server: "S" };

const theme = signal(localStorage.getItem("hearth.theme") ?? "system");
effect(() => {
  document.documentElement.dataset.theme = theme();
  localStorage.setItem("hearth.theme", theme());
});

function rail() {
  const screen = computed(() => place().screen);
  return h("nav", { class: "rail", "aria-label": "Screens" },
    h("div", { class: "brand" }, icon("flame"), h("span", {}, "Hearth")),
    screens.map((name) => h("a", {
      href: () => formatAddress({ ...place(), screen: name, path: [], parameters: {} }), title: `${labels[name]} (G ${letters[name]})`,
      "aria-current": () => screen() === name ? "page" : null,
    }, icon(name), h("span", {}, labels[name]))));
}

async function chooseDatabase(anchor) {
  // Counting the documents reads every key, which a production server should not do for a menu.
  if (isProduction) { askDatabase(); return; }
  let databases = [];
  try { databases = (await call("GET", "/hearth/v1/stats")).databases ?? []; } catch (error) { say(error.message, { isError: true }); }
  const { project, database } = place.peek();
  if (!databases.some((each) => each.project === project && each.database === database)) databases.unshift({ project, database });
  openMenu(anchor, [...databases.map((each) => ({
    label: `${each.project} / ${each.database}`, hint: each.documents === undefined ? "" : `${numberText(each.documents)} documents`,
    isChosen: each.project === project && each.database === database,
    run: () => go({ project: each.project, database: each.database, path: [] }),
  })), null, { label: "Another project or database…", run: askDatabase }]);
}

function askDatabase() {
  const project = h("input", { class: "input mono", id: "ask-project", value: place.peek().project });
  const database = h("input", { class: "input mono", id: "ask-database", value: place.peek().database });
  showDialog("Open a database", () => [
    h("div", { class: "field" }, h("label", { for: "ask-project" }, "Project"), project),
    h("div", { class: "field" }, h("label", { for: "ask-database" }, "Database"), database),
  ], (close) => [button("Cancel", () => close()), button("Open", () => {
    close();
    go({ screen: "data", project: project.value.trim(), database: database.value.trim() || "(default)", path: [] });
  }, { kind: "primary" })]);
}

async function viewAs(uid, claims = {}) {
  try {
    const made = await call("POST", "/hearth/v1/tokens", { body: { uid, claims } });
    viewer.set({ uid, claims, token: made.idToken });
  } catch (error) { say(error.message, { isError: true }); }
}

/** Lets the developer choose whose rights the data screens use. */
function askViewer() {
  const uid = h("input", { class: "input mono", id: "ask-uid", autocomplete: "off", value: viewer.peek()?.uid ?? "" });
  const claims = h("textarea", { class: "area mono", id: "ask-claims", rows: 3, value: JSON.stringify(viewer.peek()?.claims ?? {}) });
  const problem = signal("");
  showDialog("View as a user", () => [
    h("p", { class: "muted" }, "Data and queries are then read and written with the rights of this user, and the rules decide. Why shows each decision."),
    h("div", { class: "field" }, h("label", { for: "ask-uid" }, "User id"), uid),
    h("div", { class: "field" }, h("label", { for: "ask-claims" }, "Claims, as JSON"), claims),
    h("p", { class: "problem", role: "alert" }, () => problem()),
  ], (close) => [
    button("Administrator", () => { viewer.set(null); close(); }),
    button("Nobody signed in", () => { viewer.set({ uid: "", token: "" }); close(); }),
    button("View as this user", async () => {
      let parsed;
      try { parsed = JSON.parse(claims.value.trim() || "{}"); } catch { problem.set("The claims are not valid JSON."); return; }
      if (uid.value.trim() === "") { problem.set("Enter a user id."); return; }
      await viewAs(uid.value.trim(), parsed);
      close();
    }, { kind: "primary" }),
  ]);
}

function bar() {
  return h("header", { class: "bar" },
    h("button", { type: "button", class: "button quiet", "aria-haspopup": "menu", title: "Project and database",
      onclick: (event) => chooseDatabase(event.currentTarget) },
    h("span", { class: "clip", style: { "max-width": "180px" } }, () => place().project),
    h("span", { class: "muted hide-small" }, "/"), h("span", { class: "clip hide-small", style: { "max-width": "140px" } }, () => place().database), icon("down")),
    h("button", { type: "button", class: "jump", onclick: openPalette, "aria-label": "Jump to a path or a command" },
      icon("query"), h("span", { class: "grow clip", style: { "text-align": "left" } }, "Jump to a path or a command"), h("kbd", {}, keysText("Ctrl K"))),
    hasRole("editor") && h("button", { type: "button", class: "button quiet", title: "Whose rights the data screens use", onclick: askViewer }, icon("users"),
      h("span", { class: "clip hide-small", style: { "max-width": "140px" } }, () => viewer() ? viewer().uid || "nobody" : "admin")),
    h("button", { type: "button", class: "button quiet", "aria-pressed": () => String(isLive()), title: "Follow changes (P)",
      onclick: () => isLive.update((value) => !value) },
    h("span", { class: () => `dot ${liveState() === "live" ? "good" : liveState() === "lost" ? "bad" : ""}` }),
    h("span", { class: "hide-small" }, () => ({ live: "live", lost: "reconnecting", paused: "paused" })[liveState()])),
    h("button", { type: "button", class: "icon-button", "aria-label": "Time travel", title: "Time travel (T)",
      "aria-pressed": () => String(isTimeBarOpen() || isPast()), onclick: toggleTime }, icon("clock")),
    iconButton("keyboard", "All keys (?)", openKeys),
    h("button", { type: "button", class: "icon-button", "aria-label": "Theme", title: "Theme", "aria-haspopup": "menu",
      onclick: (event) => openMenu(event.currentTarget, ["system", "light", "dark"].map((name) => ({
        label: { system: "As the system", light: "Light", dark: "Dark" }[name], isChosen: theme.peek() === name, run: () => theme.set(name) }))) },
    icon("moon")),
    isProduction && h("button", { type: "button", class: "icon-button", title: () => `Sign out ${session()?.name ?? ""}`, "aria-label": "Sign out", onclick: () => signOut() }, icon("leave")));
}

function toggleTime() {
  if (!["data", "query"].includes(place.peek().screen)) go({ screen: "data", path: [] });
  isTimeBarOpen.update((value) => !value);
}

function stateLine() {
  return h("footer", { class: "state" },
    h("span", { class: isProduction ? "mode production" : "mode" }, isProduction ? "PRODUCTION" : "EMULATOR"),
    isProduction && h("span", { class: "value" }, () => session() ? `${session().name}, ${session().role}` : ""),
    isProduction && hasRole("editor") && h("button", { type: "button", class: "button quiet lock", "aria-pressed": () => String(isUnlocked()),
      title: "Lock the console against accidental changes", onclick: () => setUnlocked(!isUnlocked.peek()) },
    () => icon(isUnlocked() ? "unlock" : "lock"), () => isUnlocked() ? "Unlocked" : "Locked"),
    h("span", {}, location.host),
    h("span", { class: "hide-small" }, `Hearth ${document.documentElement.dataset.version}`),
    () => seenCommits() > 0 ? h("span", { class: "hide-small" }, `${numberText(seenCommits())} ${seenCommits() === 1 ? "commit" : "commits"} seen`) : null,
    h("div", { class: () => `notice ${notice()?.isError ? "bad" : ""}`, role: "status", "aria-live": "polite" },
      () => notice() ? [h("span", { class: "clip value" }, notice().text),
        notice().canUndo && steps().length > 0 ? button("Undo", undo, { kind: "quiet", title: "Undo (Ctrl Z)" }) : null] : null));
}

function startConsole() {
  const holder = h("main", { class: "screen", id: "screen", tabindex: "-1" });
  const app = document.getElementById("app");
  return scope(() => {
    const main = h("div", { class: "main" }, bar(),
      h("div", {}, () => isOnline() ? null : h("div", { class: "banner bad", role: "alert" }, "The server does not respond. What you see may be out of date."),
        () => isPast() || (isTimeBarOpen() && ["data", "query"].includes(place().screen)) ? timeBar() : null,
        () => viewer() ? h("div", { class: "banner hatched" }, h("span", { class: "grow" }, "You see the data as ",
          h("strong", { class: "value" }, viewer().uid || "somebody who is not signed in"), ". Rules decide."),
        button("Back to administrator", () => viewer.set(null))) : null),
      holder, stateLine());
    app.replaceChildren(h("a", { class: "skip", href: "#screen", onclick: (event) => { event.preventDefault(); holder.focus(); } },
      "Skip to the content"), rail(), main);

    command({ label: "Jump", keys: "Ctrl K", run: openPalette });
    command({ label: "Undo", keys: "Ctrl Z", isForPage: true, run: undo });
    command({ label: "All keys", keys: "?", run: openKeys });
    command({ label: "Follow changes, or pause", keys: "P", run: () => isLive.update((value) => !value) });
    command({ label: "Time travel", keys: "T", run: toggleTime });
    if (hasRole("editor")) command({ label: "View as a user", keys: "", run: askViewer });
    if (isProduction) command({ label: "Sign out", keys: "", run: () => signOut() });
    command({ label: "Open another database", keys: "", run: askDatabase });
    for (const name of ["system", "light", "dark"]) command({ label: `Theme: ${name}`, keys: "", run: () => theme.set(name) });
    for (const name of screens) command({ label: `Go to ${labels[name]}`, keys: `G ${letters[name]}`, run: () => go({ screen: name, path: [] }) });

    startFeed();
    const screen = computed(() => `${place().screen} ${place().project} ${place().database}`);
    let end = null;
    effect(() => {
      const name = screen().split(" ")[0];
      untracked(() => {
        end?.();
        document.title = `${labels[name]} · ${place.peek().project} · Hearth`;
        end = scope(() => {
          holder.replaceChildren();
          try { append(holder, makers[name]()); } catch (error) { append(holder, errorBox(error)); }
        });
      });
    });
  });
}

/** Shows the page that signs an operator in, until one is signed in. */
function startSignIn() {
  return scope(() => {
    document.title = "Sign in · Hearth";
    viewer.set(null);
    document.getElementById("app").replaceChildren(signInPage());
  });
}

function start() {
  const isSignedIn = computed(() => !isProduction || session() !== null);
  let endShown = null;
  effect(() => {
    const next = isSignedIn() ? startConsole : startSignIn;
    untracked(() => {
      endShown?.();
      // A dialog must not outlive the session that opened it.
      for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
      if (isProduction && session.peek() && place.peek().project !== session.peek().project) go({ project: session.peek().project, screen: "data", path: [] }, { replace: true });
      endShown = next();
    });
  });
}

// If the first data is about to arrive, the browser lays the page out and paints it once, with the data.
const firstDataWait = 100;
Promise.race([earlyEnd, new Promise((done) => { setTimeout(done, firstDataWait); })]).then(start, start);
