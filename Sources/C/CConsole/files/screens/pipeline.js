// The editor of pipelines, in the screen Query.
import { h, icon } from "../core/dom.js";
import { signal } from "../core/signals.js";
import { place } from "../core/address.js";
import { databaseName, runPipeline } from "../api/client.js";
import { needs, roleReason } from "../api/session.js";
import { numberText } from "../api/values.js";
import { isWriting, pipelineStages, stageNames } from "../model/pipeline.js";
import { pipelinePython, pipelineScript, pipelineSwift } from "../model/pipeline-code.js";
import { button, codeBox, confirmAction, tabList } from "../parts/dialog.js";
import { authorizationOption, quotedForShell, urlPath } from "../model/shell.js";

const rowsMax = 1000;

/**
 * The editor. `text` is a signal of the pipeline, `run` runs it. Returns `view()`, `ask(stop, isAutomatic)` with the results for
 * the screen, or `null` if the user declines, and views of the plan and of the code.
 */
export function pipelineEditor({ text, change, run, isRunning }) {
  const problem = signal("");
  const language = signal("curl");
  const stages = () => pipelineStages(text.peek(), databaseName());
  const check = () => {
    // A pipeline can write, so the server runs none for a viewer.
    if (roleReason("editor")) { problem.set(roleReason("editor")); return false; }
    try { stages(); problem.set(""); return true; } catch (error) { problem.set(error.message); return false; }
  };
  let area = null;

  /** Puts a stage into the text: a new line at the end. */
  function add(name) {
    area.value = `${area.value.trimEnd()}\n${name} `.trimStart();
    change(area.value);
    check();
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  }

  function view() {
    return h("div", { class: "stack", style: { gap: "8px" } },
      area = h("textarea", { class: "area mono pipeline", rows: 6, spellcheck: "false", wrap: "off", "aria-label": "Pipeline", value: text.peek(),
        "aria-describedby": "pipeline-problem",
        oninput: (event) => { change(event.target.value); check(); } }),
      h("p", { class: "problem value", role: "alert", id: "pipeline-problem" }, () => problem()),
      h("div", { class: "row wrap" },
        h("span", { class: "muted small hide-small" }, "Add"),
        stageNames.filter((name) => !["database", "documents", "collection_group", "replace_with", "offset", "sample"].includes(name)).map((name) =>
          h("button", { type: "button", class: "chip small mono hide-small", onclick: () => add(name) }, name)),
        h("span", { class: "grow" }),
        () => isRunning() ? button("Stop", () => run({ isStop: true })) : null,
        h("button", { type: "button", class: "button primary run", title: "Run (Ctrl Enter)", onclick: () => run(), ...needs("editor") }, icon("play"), "Run")));
  }

  async function ask(stop, isAutomatic) {
    const asked = stages();
    if (isWriting(asked)) {
      if (isAutomatic) return null;
      const isSure = await confirmAction({ title: "This pipeline writes", action: "Run it",
        body: h("p", {}, "It changes or deletes every document that reaches its last stage. It cannot be undone.") });
      if (!isSure) return null;
    }
    const isBound = isWriting(asked) || asked.at(-1)?.name === "limit";
    const bound = isBound ? asked : [...asked, { name: "limit", args: [{ integerValue: String(rowsMax) }] }];
    const parts = await runPipeline(bound, stop);
    const documents = parts.flatMap((part) => part.results ?? []);
    return { documents, explanation: parts.find((part) => part.explainStats)?.explainStats.data?.value ?? "", isCut: !isBound && documents.length === rowsMax,
      isPipeline: true };
  }

  function plan(outcome) {
    return h("div", { class: "scroll pad stack" }, h("h2", {}, "How the server ran the pipeline"),
      outcome?.explanation ? codeBox(outcome.explanation.trim(), "Copy the plan") : h("p", { class: "muted" }, "Run the pipeline to see its plan."),
      h("p", { class: "muted" }, `The console asks for at most ${numberText(rowsMax)} results. In production, pipelines need a database of the enterprise edition.`));
  }

  function code() {
    return h("div", { class: "scroll pad stack" },
      tabList("Language", [["curl", "REST"], ["javascript", "JavaScript"], ["python", "Python"], ["swift", "Swift"], ["json", "Stages"]], language),
      codeBox(() => {
        let found;
        text();
        try {
          found = stages();
          if (language() === "javascript") return pipelineScript(found);
          if (language() === "python") return pipelinePython(found, { ...place(), host: location.host });
          if (language() === "swift") return pipelineSwift(found);
        } catch (error) { return error.message; }
        if (language() === "json") return JSON.stringify(found, null, 2);
        const body = JSON.stringify({ structuredPipeline: { pipeline: { stages: found } } }, null, 2);
        const url = `${location.origin}/v1/${urlPath(databaseName())}/documents:executePipeline`;
        return `curl -X POST ${quotedForShell(url)} \\\n  ${authorizationOption()} -H 'Content-Type: application/json' \\\n  -d ${quotedForShell(body)}`;
      }, "Copy the code"));
  }
  return { view, ask, plan, code, check };
}
