// Undo: every write of the console keeps the write that takes it back.
import { signal } from "../core/signals.js";
import { commitAll } from "../api/client.js";

const stepsMax = 50;
/**
 * The steps that can be taken back, the newest last: `{ label, writes }`. Many writes are several commits. `writes` may be
 * a function that finds the writes when the step is taken back.
 */
export const steps = signal([]);
/** What was done last: `{ text, canUndo, isError }`. */
export const notice = signal(null);

let hideTimer = 0;

/** Says what was done. */
export function say(text, { canUndo = false, isError = false } = {}) {
  clearTimeout(hideTimer);
  notice.set({ text, canUndo, isError });
  hideTimer = setTimeout(() => notice.set(null), isError ? 12_000 : 8_000);
}

const restored = (document) => ({ name: document.name, fields: document.fields ?? {} });

/** The write that takes a change back. `before` and `after` are documents, or `null`. `after` needs its update time. */
export function inverse(before, after) {
  const currentDocument = after ? { updateTime: after.updateTime } : { exists: false };
  if (!before) return { delete: after.name, currentDocument };
  return { update: restored(before), currentDocument };
}

/** Remembers a step. */
export function remember(label, writes) {
  steps.update((known) => [...known, { label, writes }].slice(-stepsMax));
  say(label, { canUndo: true });
}

/** Takes the last step back. */
export async function undo() {
  const step = steps.peek().at(-1);
  if (!step) { say("There is nothing to undo."); return; }
  let done = 0;
  try {
    const writes = typeof step.writes === "function" ? await step.writes() : step.writes;
    await commitAll(writes, { isPresent: true, onResults: (_, __, count) => {
      done = count;
      if (writes.length > count) say(`Undoing: ${count} of ${writes.length} documents`);
    } });
    steps.update((known) => known.filter((each) => each !== step));
    say(`Undone: ${step.label}`);
  } catch (error) {
    say(error.code === "FAILED_PRECONDITION" || error.code === "ALREADY_EXISTS" || error.code === "NOT_FOUND"
      ? `Cannot undo "${step.label}": ${done > 0 ? `${done} documents are restored, but another` : "the document"} has changed since.`
      : error.message, { isError: true });
    steps.update((known) => known.filter((each) => each !== step));
  }
}
