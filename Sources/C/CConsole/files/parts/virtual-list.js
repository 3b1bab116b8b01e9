// A list of any number of rows: a few elements are moved to where the list is scrolled.
import { h } from "../core/dom.js";
import { effect, onEnd } from "../core/signals.js";

/** Browsers limit the height of an element. Above this, the position of the scroll bar stands for a rank. */
const heightMax = 8_000_000;

/** The rank of the first row at a scroll position, with the pixels that it is scrolled out of view. */
export function rankAt(scrollTop, count, rowHeight, viewHeight) {
  const full = count * rowHeight;
  if (full <= heightMax) return scrollTop / rowHeight;
  const share = scrollTop / Math.max(1, heightMax - viewHeight);
  return (share * (full - viewHeight)) / rowHeight;
}

/** The scroll position at which a rank is the first row. */
export function positionOf(rank, count, rowHeight, viewHeight) {
  const full = count * rowHeight;
  if (full <= heightMax) return rank * rowHeight;
  return ((rank * rowHeight) / (full - viewHeight)) * (heightMax - viewHeight);
}

/**
 * Makes a list. `count` is a signal; `render(element, index)` fills a row; `version` is a signal that changes when rows
 * must be filled again; `onVisible(first, last)` is told which rows are shown.
 */
export function virtualList({ label, count, rowHeight, version, render, makeRow, onVisible, role = "listbox", head }) {
  const layer = h("div", { class: "layer", role: "presentation" });
  const spacer = h("div", { class: "spacer", role: "presentation" }, layer);
  const box = h("div", { class: "virtual", role, tabindex: "0", "aria-label": label }, head ?? null, spacer);
  const rows = [];
  let first = 0;
  let isWaiting = false;
  /** The height in which rows are shown, once the browser has measured it. */
  let height = 0;

  function draw() {
    isWaiting = false;
    const total = count.peek();
    if (height <= 0) return;
    const needed = Math.min(total, Math.ceil(height / rowHeight) + 2);
    while (rows.length < needed) { const row = makeRow(); rows.push(row); layer.append(row); }
    while (rows.length > needed) rows.pop().remove();
    const exact = Math.max(0, Math.min(rankAt(box.scrollTop, total, rowHeight, height), total - height / rowHeight));
    first = Math.max(0, Math.min(Math.floor(exact), total - needed));
    const top = total * rowHeight <= heightMax ? first * rowHeight : box.scrollTop - (exact - first) * rowHeight;
    layer.style.transform = `translateY(${top}px)`;
    for (let index = 0; index < needed; index += 1) render(rows[index], first + index);
    onVisible?.(first, first + needed);
  }

  function schedule() {
    if (isWaiting || height <= 0) return;
    isWaiting = true;
    requestAnimationFrame(() => { if (isWaiting) draw(); });
  }

  box.addEventListener("scroll", schedule, { passive: true });
  const observer = new ResizeObserver(() => {
    height = box.clientHeight - (head ? head.offsetHeight : 0);
    draw();
  });
  observer.observe(box);
  onEnd(() => observer.disconnect());
  effect(() => {
    const total = count();
    spacer.style.height = `${Math.min(heightMax, total * rowHeight)}px`;
    schedule();
  });
  effect(() => { version?.(); schedule(); });

  /** Scrolls so that a row is in view. */
  box.show = (index) => {
    const total = count.peek();
    const rank = rankAt(box.scrollTop, total, rowHeight, height);
    const most = height / rowHeight;
    if (index < rank) box.scrollTop = positionOf(index, total, rowHeight, height);
    else if (index > rank + most - 1) {
      box.scrollTop = positionOf(Math.max(0, index - most + 1), total, rowHeight, height) + 1;
    }
    schedule();
  };
  box.pageRows = () => Math.max(1, Math.floor(box.clientHeight / rowHeight) - 1);
  return box;
}
