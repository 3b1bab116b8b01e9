// An empty database: what to do first.
import { h, icon } from "../core/dom.js";
import { signal } from "../core/signals.js";
import { place } from "../core/address.js";
import { resourceName } from "../api/client.js";
import { hasRole, isProduction } from "../api/session.js";
import { parseNotation } from "../api/values.js";
import { say } from "../model/undo.js";
import { button, codeBox, tabList } from "../parts/dialog.js";
import { newDocument } from "./document-actions.js";
import { importDocuments, importInput } from "./transfer.js";
import { readTree } from "../model/tree.js";

/** A small shop: what a newcomer meets first. */
const sample = {
  $collections: ["customers", "orders", "orders/*/items", "products", "products/*/reviews"],
  customers: {
    ann: { name: "Ann Rossi", city: "Turin", newsletter: true, since: { $timestamp: "2025-01-15T10:00:00Z" } },
    ben: { name: "Ben Okafor", city: "Leeds", newsletter: false, since: { $timestamp: "2025-02-20T15:30:00Z" } },
  },
  products: {
    "red-mug": { name: "Red mug", price: 12.5, stock: 40, tags: ["ceramic", "gift"], reviews: {
      ann: { stars: 5, text: "My tea has never tasted better.", at: { $timestamp: "2025-03-02T08:00:00Z" } } } },
    "desk-lamp": { name: "Desk lamp", price: 48, stock: 5, tags: ["steel"], size: { height: 41, width: 18 } },
  },
  orders: {
    1001: { customer: "ann", status: "delivered", total: 25, placed: { $timestamp: "2025-02-28T17:03:00Z" }, items: {
      1: { product: { $ref: "products/red-mug" }, price: 12.5, quantity: 2 } } },
  },
};

const host = () => location.host;

function snippet(language) {
  const { project } = place();
  switch (language) {
    case "web": return `import { initializeApp } from "firebase/app";
import { connectFirestoreEmulator, getFirestore } from "firebase/firestore";

const db = getFirestore(initializeApp({ projectId: "${project}" }));
connectFirestoreEmulator(db, "${location.hostname}", ${location.port || 80});`;
    case "python": return `# FIRESTORE_EMULATOR_HOST=${host()} python app.py
from google.cloud import firestore

db = firestore.Client(project="${project}")
db.document("users/ann").set({"name": "Ann"})`;
    case "swift": return `import HearthClient

let hearth = Hearth(url: URL(string: "${location.origin}")!, project: "${project}")
try await hearth.document("users/ann").set(["name": "Ann"])`;
    default: return `curl -X PATCH '${location.origin}/v1/projects/${project}/databases/(default)/documents/users/ann' \\
  -H 'Content-Type: application/json' \\
  -d '{"fields": {"name": {"stringValue": "Ann"}}}'`;
  }
}

export function emptyDatabase() {
  if (isProduction) {
    return h("div", { class: "empty" }, h("h2", {}, "This database is empty"), h("p", {}, "What apps write appears here at once."),
      hasRole("editor") ? button("Create a document", () => newDocument("")) : null);
  }
  const language = signal("web");
  const input = importInput();
  return h("div", { class: "scroll" }, h("div", { class: "empty" },
    h("h2", {}, "This database is empty"),
    h("p", {}, "Fill it with sample data to look around, import documents, or connect an app. What the app writes appears here at once."),
    h("div", { class: "cards" },
      h("button", { type: "button", class: "card", onclick: async () => {
        const documents = readTree(JSON.stringify(sample), resourceName(""), parseNotation);
        await importDocuments(documents, () => {});
        say(`Loaded the sample: ${documents.length} documents`);
      } }, icon("flame"), h("h2", {}, "Load a sample"), h("span", { class: "muted" }, "A small shop: products, customers and orders.")),
      h("button", { type: "button", class: "card", onclick: () => input.click() }, icon("upload"), h("h2", {}, "Import files"),
        h("span", { class: "muted" }, "JSON trees, lines of JSON, or CSV. Or drop them here.")),
      h("button", { type: "button", class: "card", onclick: () => newDocument("") }, icon("plus"), h("h2", {}, "Start a collection"),
        h("span", { class: "muted" }, "Create the first document by hand."))),
    input,
    h("h2", { style: { "margin-top": "16px" } }, "Connect an app"),
    tabList("Language", [["web", "JavaScript"], ["python", "Python"], ["swift", "Swift"], ["curl", "curl"]], language),
    codeBox(() => snippet(language()), "Copy the snippet"),
    h("p", { class: "small" }, "A Firebase export is imported with ", h("span", { class: "mono" }, "hearth import FOLDER"), ".")));
}

