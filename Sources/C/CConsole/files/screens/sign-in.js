// The page that signs an operator in to the console of a production server.
import { h, icon } from "../core/dom.js";
import { signal } from "../core/signals.js";
import { sessionNote, signIn } from "../api/session.js";

export function signInPage() {
  const fixedProject = document.documentElement.dataset.project;
  const problem = signal("");
  const isBusy = signal(false);
  const name = h("input", { class: "input", id: "sign-in-name", name: "username", autocomplete: "username", autocapitalize: "none", spellcheck: "false", required: true });
  const password = h("input", { class: "input", id: "sign-in-password", name: "password", type: "password", autocomplete: "current-password", required: true });
  const project = h("input", { class: "input mono", id: "sign-in-project", autocapitalize: "none", spellcheck: "false", required: true,
    value: sessionStorage.getItem("hearth.project") ?? "" });

  async function submit(event) {
    event.preventDefault();
    if (isBusy.peek()) return;
    isBusy.set(true);
    problem.set("");
    try {
      if (!fixedProject) sessionStorage.setItem("hearth.project", project.value.trim());
      await signIn(name.value.trim(), password.value, fixedProject ? "" : project.value.trim());
    } catch (error) {
      problem.set(error.message);
      password.value = "";
      password.focus();
    }
    isBusy.set(false);
  }

  const field = (label, input) => h("div", { class: "field" }, h("label", { for: input.id }, label), input);
  setTimeout(() => (fixedProject ? name : project).focus(), 0);
  return h("main", { class: "sign-in", id: "screen", tabindex: "-1" },
    h("form", { class: "sign-in-box stack", onsubmit: submit, "aria-labelledby": "sign-in-title" },
      h("div", { class: "brand" }, icon("flame"), h("span", {}, "Hearth")),
      h("h1", { id: "sign-in-title" }, "Sign in to the console"),
      h("p", { class: "muted" }, fixedProject ? ["Project ", h("strong", { class: "value" }, fixedProject), " on ", h("span", { class: "value" }, location.host)]
        : ["Server ", h("span", { class: "value" }, location.host)]),
      () => sessionNote() ? h("p", { role: "status" }, sessionNote()) : null,
      fixedProject ? null : field("Project", project),
      field("Name", name), field("Password", password),
      h("p", { class: "problem", role: "alert" }, () => problem()),
      h("button", { type: "submit", class: "button primary", disabled: () => isBusy() }, () => isBusy() ? "Signing in…" : "Sign in"),
      h("p", { class: "muted small" }, "Operators are added with ", h("code", {}, "hearth operators add"), " on the server.")));
}
