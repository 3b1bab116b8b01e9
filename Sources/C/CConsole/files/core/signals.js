// Values that others depend on, and effects that run again when such a value changes.

/** The effect or scope that owns effects made now. */
let owner = null;
/** The effect that reads values now. */
let reader = null;
const waiting = new Set();
let isScheduled = false;

function flush() {
  isScheduled = false;
  for (let round = 0; waiting.size > 0; round += 1) {
    if (round === 100) { waiting.clear(); throw new Error("effects change each other without end"); }
    const effects = [...waiting];
    waiting.clear();
    for (const each of effects) if (!each.isEnded) runEffect(each);
  }
}

/** A value. Call it to read; `set` and `update` change it. */
export function signal(value) {
  const readers = new Set();
  const read = () => {
    if (reader) { readers.add(reader); reader.sources.add(readers); }
    return value;
  };
  read.peek = () => value;
  read.set = (next) => {
    if (Object.is(next, value)) return;
    value = next;
    for (const each of readers) waiting.add(each);
    if (!isScheduled && readers.size > 0) { isScheduled = true; queueMicrotask(flush); }
  };
  read.update = (change) => read.set(change(value));
  return read;
}

function runEffect(self) {
  endParts(self);
  const [before, readerBefore] = [owner, reader];
  owner = self;
  reader = self;
  try { self.work(); } finally { owner = before; reader = readerBefore; }
}

function endParts(self) {
  for (const part of self.parts) { part.isEnded = true; endParts(part); }
  self.parts = [];
  for (const source of self.sources) source.delete(self);
  self.sources.clear();
  for (const clean of self.cleanups.splice(0)) clean();
}

function node(work) {
  const made = { work, parts: [], sources: new Set(), cleanups: [], isEnded: false };
  if (owner) owner.parts.push(made);
  return made;
}

/** Runs `work` now, and again after a value that it read has changed. It ends with the effect that made it. */
export function effect(work) { runEffect(node(work)); }

/** Runs `work` when the owner of the current effect ends. */
export function onEnd(work) { if (owner) owner.cleanups.push(work); }

/** Reads values without depending on them. */
export function untracked(work) {
  const before = reader;
  reader = null;
  try { return work(); } finally { reader = before; }
}

/** A value that is computed from others. */
export function computed(work) {
  const result = signal(undefined);
  effect(() => result.set(work()));
  return result;
}

/** Runs `work` with an owner of its own, and returns a function that ends it. */
export function scope(work) {
  const before = owner;
  const self = node(() => {});
  owner = self;
  try { untracked(work); } finally { owner = before; }
  return () => { self.isEnded = true; endParts(self); };
}
