// The screen Files: buckets, folders, previews and uploads.
import { h, icon, iconButton } from "../core/dom.js";
import { effect, onEnd, signal, untracked } from "../core/signals.js";
import { formatAddress, go, place } from "../core/address.js";
import { command } from "../core/keys.js";
import { call, send } from "../api/client.js";
import { hasRole, isProduction, needs } from "../api/session.js";
import { bytesText, numberText, timeText, visible } from "../api/values.js";
import { say } from "../model/undo.js";
import { button, confirmAction, copyText, errorBox, openMenu, showDialog } from "../parts/dialog.js";
import { fileInput, takeDrops } from "./transfer.js";

const previewBytesMax = 20_000_000;
const textBytesMax = 200_000;

export function filesScreen() {
  const buckets = signal(null);
  const listing = signal(null);
  const kept = signal(new Map());
  const failure = signal(null);
  const encoded = encodeURIComponent;
  const bucket = () => place().path[0] ?? buckets()?.[0] ?? `${place().project}.appspot.com`;
  const folder = () => place().path.slice(1).join("/");
  const chosen = () => place().parameters.file ?? "";

  async function load() {
    try {
      const found = await call("GET", "/storage/v1/b");
      buckets.set((found.items ?? []).map((each) => each.name));
      kept.set(new Map((found.items ?? []).map((each) => [each.name, each])));
      const prefix = folder() === "" ? "" : `${folder()}/`;
      const page = await call("GET", `/storage/v1/b/${encoded(bucket())}/o?delimiter=/&maxResults=1000&prefix=${encoded(prefix)}`);
      listing.set({ folders: page.prefixes ?? [], files: (page.items ?? []).filter((each) => each.name !== prefix), prefix, isCut: Boolean(page.nextPageToken) });
      failure.set(null);
    } catch (error) { failure.set(error); }
  }
  effect(() => { bucket(); folder(); untracked(load); });

  async function upload(files) {
    const prefix = folder() === "" ? "" : `${folder()}/`;
    for (const file of files) {
      try {
        say(`Uploading ${file.name}, ${bytesText(file.size)}`);
        await send("POST", `/upload/storage/v1/b/${encoded(bucket())}/o?uploadType=media&name=${encoded(prefix + file.name)}`,
          { body: file, isRaw: true, headers: { "Content-Type": file.type || "application/octet-stream" } });
        say(`Uploaded ${file.name}`);
      } catch (error) { say(`${file.name}: ${error.message}`, { isError: true }); }
    }
    load();
  }
  const input = fileInput("Files to upload", upload);
  command({ label: "Upload files", keys: "N", group: "Files", when: () => hasRole("editor"), run: () => input.click() });

  const addressOfFolder = (path) => formatAddress({ ...place(), screen: "files", path: [bucket(), ...path.split("/").filter(Boolean)], parameters: {} });
  const pick = (name) => go({ screen: "files", path: [bucket(), ...folder().split("/").filter(Boolean)], parameters: { file: name } }, { replace: true });

  const box = h("div", { class: "fill" },
    h("div", { class: "head" },
      h("nav", { class: "crumbs", "aria-label": "Path" }, () => [h("h1", { class: "visually-hidden" }, "Files"),
        (buckets()?.length ?? 0) > 1 ? h("select", { class: "select", "aria-label": "Bucket", onchange: (event) => go({ screen: "files", path: [event.target.value] }) },
          buckets().map((name) => h("option", { value: name, selected: name === bucket() }, name)))
          : h("a", { href: addressOfFolder(""), class: "mono value clip" }, bucket()),
        folder().split("/").filter(Boolean).map((segment, index, all) => [h("span", { class: "muted" }, "/"),
          h("a", { class: "mono value clip", href: addressOfFolder(all.slice(0, index + 1).join("/")) }, visible(segment))])]),
      button("Refresh", load, { kind: "quiet" }),
      iconButton("more", "Buckets", (event) => openMenu(event.currentTarget, bucketMenu()), { "aria-haspopup": "menu" }),
      h("button", { type: "button", class: "button primary", onclick: () => input.click(), title: "Upload (N)", ...needs("editor") }, icon("upload"), "Upload"), input),
    () => failure() ? errorBox(failure(), load) : !listing() ? h("div", { class: "busy" })
      : listing().files.length + listing().folders.length === 0 ? h("div", { class: "empty" }, h("h2", {}, "No files here"),
        h("p", {}, "Drop files here, or choose them. Apps upload with the Firebase SDK or any client of Cloud Storage."),
        button("Upload files", () => input.click(), { kind: "primary", ...needs("editor") }))
        : h("div", { class: "split", style: { "grid-template-columns": chosen() && innerWidth > 680 ? "minmax(0, 1fr) minmax(320px, 440px)" : "minmax(0, 1fr)" } },
          h("section", { "aria-label": "Files and folders" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "List of files and folders" }, h("table", {},
            h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Name"), h("th", { scope: "col", class: "end" }, "Size"), h("th", { scope: "col" }, "Type"), h("th", { scope: "col" }, "Changed"))),
            h("tbody", {},
              listing().folders.map((name) => h("tr", {}, h("td", { colspan: 4 }, h("a", { class: "row text-link", href: addressOfFolder(name) }, icon("files"),
                h("span", { class: "value" }, visible(name.slice(listing().prefix.length).replace(/\/$/, ""))))))),
              listing().files.map((file) => h("tr", { class: "pick", "aria-selected": () => String(chosen() === file.name), onclick: () => pick(file.name) },
                h("td", {}, h("button", { type: "button", class: "row text-link value", style: { border: 0, background: "none", padding: 0, cursor: "pointer" } },
                  icon("file"), visible(file.name.slice(listing().prefix.length)))),
                h("td", { class: "end" }, bytesText(Number(file.size))), h("td", { class: "value" }, visible(file.contentType ?? "")), h("td", {}, timeText(file.updated).slice(0, 19)))))),
          listing().isCut ? h("p", { class: "pad muted" }, `The first ${numberText(1000)} files are shown.`) : null)),
          () => {
            const file = listing().files.find((each) => each.name === chosen());
            return file ? h("aside", { "aria-label": "File" }, details(file)) : null;
          }));
  if (hasRole("editor")) takeDrops(box, upload);
  return box;

  async function changeBucket(method, name, body, text) {
    try {
      await call(method, `/storage/v1/b${name ? `/${encoded(name)}` : `?project=${encoded(place.peek().project)}`}`, { body });
      say(text);
      return true;
    } catch (error) { say(error.message, { isError: true }); return false; }
  }

  function bucketMenu() {
    const name = bucket();
    const hasVersions = Boolean(kept.peek().get(name)?.versioning?.enabled);
    // The console of a production server changes files, not buckets.
    const exists = !isProduction && kept.peek().has(name);
    return [
      isProduction ? null : { label: "New bucket…", icon: "plus", run: newBucket },
      { label: "Copy the name", icon: "copy", run: () => copyText(`gs://${name}`, "Name copied") },
      exists ? { label: "Keep old versions of files", isChosen: hasVersions, run: async () => {
        if (await changeBucket("PATCH", name, { versioning: { enabled: !hasVersions } }, hasVersions ? "Old versions are no longer kept" : "Old versions are kept from now on")) load();
      } } : null,
      exists ? { label: "Delete the bucket…", icon: "trash", isDanger: true, run: async () => {
        const isSure = await confirmAction({ title: "Delete this bucket?", action: "Delete the bucket",
          body: h("p", {}, "This deletes the bucket ", h("strong", { class: "value" }, name), ", which must be empty.") });
        if (isSure && await changeBucket("DELETE", name, undefined, "Deleted the bucket")) { go({ screen: "files", path: [] }); load(); }
      } } : null,
    ].filter(Boolean);
  }

  async function newBucket() {
    const input_ = h("input", { class: "input mono", id: "new-bucket", autocomplete: "off", placeholder: "pictures" });
    const name = await showDialog("New bucket", () => h("div", { class: "field" }, h("label", { for: "new-bucket" }, "Name"), input_,
      h("p", { class: "small muted" }, "3 to 63 lower-case letters, digits, dashes, underscores and dots.")),
    (close) => [button("Cancel", () => close()), button("Create", () => close(input_.value.trim()), { kind: "primary" })]);
    if (name && await changeBucket("POST", "", { name }, "Created the bucket")) { await load(); go({ screen: "files", path: [name] }); }
  }

  function details(file) {
    const path = `/storage/v1/b/${encoded(file.bucket)}/o/${encoded(file.name)}`;
    return h("div", { class: "scroll" },
      h("div", { class: "head" }, h("h2", { class: "grow clip value" }, visible(file.name.split("/").pop())),
        iconButton("close", "Close", () => go({ screen: "files", path: place.peek().path }, { replace: true }))),
      h("div", { class: "pad stack" }, preview(file, path),
        h("dl", { class: "facts" },
          h("dt", {}, "size"), h("dd", {}, `${numberText(Number(file.size))} bytes`), h("dt", {}, "type"), h("dd", { class: "value" }, visible(file.contentType ?? "")),
          h("dt", {}, "created"), h("dd", {}, timeText(file.timeCreated)), h("dt", {}, "MD5"), h("dd", { class: "mono" }, file.md5Hash ?? ""),
          Object.entries(file.metadata ?? {}).filter(([key]) => key !== "firebaseStorageDownloadTokens").map(([key, value]) =>
            [h("dt", { class: "value" }, visible(key)), h("dd", { class: "mono value" }, visible(value))])),
        h("div", { class: "row wrap" },
          h("button", { type: "button", class: "button", onclick: () => download(file, path) }, icon("download"), "Download"),
          button("Copy the path", () => copyText(`gs://${file.bucket}/${file.name}`, "Path copied")),
          button("Delete…", async () => {
            const isSure = await confirmAction({ title: "Delete this file?", action: "Delete the file",
              body: h("p", {}, "This deletes ", h("strong", { class: "value" }, visible(file.name)), ". It cannot be undone.") });
            if (!isSure) return;
            try { await send("DELETE", path); say("Deleted the file"); load(); } catch (error) { say(error.message, { isError: true }); }
          }, { kind: "danger", ...needs("editor") }))));
  }

  /** A preview that cannot run anything: pictures, sound and film by their elements, and texts as text. */
  function preview(file, path) {
    const place = h("div", { class: "preview-box" });
    const type = file.contentType ?? "";
    const size = Number(file.size);
    let isEnded = false;
    let url = "";
    onEnd(() => { isEnded = true; if (url) URL.revokeObjectURL(url); });
    const isMedia = /^(image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)|audio\/|video\/)/.test(type);
    const isText = /^text\/|json|javascript|xml/.test(type) && !isMedia;
    if (!(isMedia && size <= previewBytesMax) && !(isText && size <= textBytesMax)) {
      place.append(h("span", { class: "muted" }, "No preview for this file"));
      return place;
    }
    send("GET", `${path}?alt=media`).then(async (response) => {
      const blob = await response.blob();
      if (isEnded) return;
      if (isText) { place.replaceChildren(h("pre", { class: "code", tabindex: "0", style: { width: "100%" } }, await blob.text())); return; }
      url = URL.createObjectURL(new Blob([blob], { type }));
      const label = `Preview of ${file.name.split("/").pop()}`;
      place.replaceChildren(type.startsWith("image/") ? h("img", { src: url, alt: label })
        : type.startsWith("video/") ? h("video", { src: url, controls: true, "aria-label": label }) : h("audio", { src: url, controls: true, "aria-label": label }));
    }, () => place.replaceChildren(h("span", { class: "muted" }, "The preview cannot be loaded")));
    return place;
  }

  async function download(file, path) {
    try {
      const blob = await (await send("GET", `${path}?alt=media`)).blob();
      const link = h("a", { href: URL.createObjectURL(new Blob([blob], { type: "application/octet-stream" })), download: file.name.split("/").pop() });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    } catch (error) { say(error.message, { isError: true }); }
  }
}

