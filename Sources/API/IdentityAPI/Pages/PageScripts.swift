/// The scripts of the sign-in pages. They exchange messages with the web SDK of Firebase in the form that it expects:
/// an event goes from the sign-in page to the hidden frame of the app's page, and from there to the SDK.
enum PageScripts {
  /// Gives an event to the app. The page's data has the members `apiKey`, `appName`, `authType` and `pageURL`.
  ///
  /// For a pop-up, the frame is one of the frames of the window that opened it. The message names this server's own
  /// origin as its target, so no other page can read it. After a redirect, the frame finds the event in the session
  /// storage of this origin.
  static let delivery = #"""
    "use strict";
    const page = JSON.parse(document.getElementById("page").textContent);
    const storageKey = page.apiKey + ":" + page.appName;
    const isPopup = /ViaPopup$/.test(page.authType);
    function show(id) {
      for (const part of document.querySelectorAll("[data-view]")) part.hidden = part.id !== id;
      const title = document.querySelector("#" + id + " h1");
      if (title) title.focus();
    }
    function frameOfApp() {
      const frames = window.opener ? window.opener.frames : [];
      for (let i = 0; i < frames.length; i += 1) {
        try {
          if (frames[i].location.origin !== location.origin) continue;
          const query = new URLSearchParams(frames[i].location.search);
          if (query.get("apiKey") === page.apiKey && query.get("appName") === page.appName) return frames[i];
        } catch (error) { /* A frame of another origin. */ }
      }
      return null;
    }
    function deliver(event) {
      if (!isPopup) {
        sessionStorage.setItem("firebase:redirectEvent:" + storageKey, JSON.stringify(event));
        location.replace(page.pageURL);
        return;
      }
      const frame = frameOfApp();
      if (!frame) return show("lost");
      frame.postMessage(
        { eventType: "sendAuthEvent", eventId: String(Math.random()).slice(2), data: { storageKey, authEvent: event } },
        location.origin);
      show("done");
    }
    """#

  /// Delivers the event in the page's data at once.
  static let result = #"""
    deliver(page.event);
    """#

  /// Lets a developer choose an account of an emulator, or describe a new one.
  static let chooser = #"""
    const form = document.getElementById("new");
    const mail = document.getElementById("email");
    const mailError = document.getElementById("email-error");
    function finish(claims) {
      const token = JSON.stringify(claims);
      const provider = encodeURIComponent(page.providerID);
      const parameters = "providerId=" + provider + "&id_token=" + encodeURIComponent(token);
      deliver({
        type: page.authType, eventId: page.eventID, urlResponse: location.origin + location.pathname + "?" + parameters,
        sessionId: "unused", postBody: "", tenantId: null, error: null
      });
    }
    function identity(account) {
      const claims = { iss: "", aud: "", exp: 0, iat: 0, sub: account.sub, email_verified: account.isVerified };
      if (account.email) claims.email = account.email;
      if (account.name) claims.name = account.name;
      if (account.screenName) claims.screen_name = account.screenName;
      if (account.picture) claims.picture = account.picture;
      return claims;
    }
    function cancel() {
      if (isPopup) return window.close();
      deliver({
        type: page.authType, eventId: page.eventID, urlResponse: null, sessionId: null, postBody: null, tenantId: null,
        error: { code: "auth/user-cancelled", message: "The user cancelled the sign-in." }
      });
    }
    const list = document.getElementById("accounts");
    for (const account of page.accounts) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "account";
      const initial = document.createElement("span");
      initial.className = "initial";
      initial.setAttribute("aria-hidden", "true");
      initial.textContent = (account.name || account.email || "?").trim().charAt(0).toUpperCase();
      const who = document.createElement("span");
      who.className = "who";
      const title = account.name || account.email || account.sub;
      const texts = [["name", title], ["mail", account.name ? account.email : ""]];
      for (const [kind, text] of texts) {
        if (!text) continue;
        const line = document.createElement("span");
        line.className = kind;
        line.textContent = text;
        who.append(line);
      }
      button.append(initial, who);
      button.addEventListener("click", () => finish(identity(account)));
      const item = document.createElement("li");
      item.append(button);
      list.append(item);
    }
    function checkMail() {
      const text = mail.value.trim();
      const problem = text === "" || /^[^@\s]+@[^@\s]+$/.test(text) ? "" : "Enter an address such as ann@example.com.";
      mailError.textContent = problem;
      mail.setAttribute("aria-invalid", problem ? "true" : "false");
      return problem === "";
    }
    mail.addEventListener("change", checkMail);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!checkMail()) return mail.focus();
      const digits = crypto.getRandomValues(new Uint32Array(4));
      finish(identity({
        sub: Array.from(digits, (number) => String(number).padStart(10, "0")).join(""),
        email: mail.value.trim(), name: document.getElementById("name").value.trim(),
        picture: document.getElementById("picture").value.trim(),
        isVerified: document.getElementById("verified").checked
      }));
    });
    document.getElementById("generate").addEventListener("click", () => {
      const names = ["Amber", "Birch", "Cedar", "Ember", "Fern", "Hazel", "Juniper", "Linden", "Rowan", "Willow"];
      const pick = () => names[Math.floor(Math.random() * names.length)];
      const [first, second, number] = [pick(), pick(), Math.floor(Math.random() * 9000) + 1000];
      document.getElementById("name").value = first + " " + second;
      mail.value = (first + "." + second + "." + number).toLowerCase() + "@example.com";
      checkMail();
      document.getElementById("submit").focus();
    });
    document.getElementById("add").addEventListener("click", () => { show("describe"); mail.focus(); });
    document.getElementById("back").addEventListener("click", () => show("choose"));
    for (const button of document.querySelectorAll("[data-cancel]")) button.addEventListener("click", cancel);
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") cancel(); });
    document.getElementById("back").hidden = page.accounts.length === 0;
    if (page.accounts.length === 0) { show("describe"); mail.focus(); } else show("choose");
    """#

  /// The hidden frame in the page of an app. It talks to the SDK by one of two channels: a message port of this
  /// server's loader, or the frame library of Google, whose loader then is in the app's page.
  static let frame = #"""
    "use strict";
    (function () {
      const page = JSON.parse(document.getElementById("page").textContent);
      const storageKey = page.apiKey + ":" + page.appName;
      const eventKey = "firebase:redirectEvent:" + storageKey;
      let send = null;
      window.addEventListener("message", (message) => {
        const data = message.data;
        if (message.origin !== location.origin || !data || data.eventType !== "sendAuthEvent") return;
        if (!data.data || data.data.storageKey !== storageKey) return;
        if (send) send(data.data.authEvent); else sessionStorage.setItem(eventKey, JSON.stringify(data.data.authEvent));
      });
      function start(register, post) {
        register("webStorageSupport", () => ({ status: "ACK", webStorageSupport: true }));
        send = (event) => post("authEvent", {
          type: "authEvent", authEvent: event || { type: "unknown", error: { code: "auth/no-auth-event" } }
        });
        let stored = null;
        try {
          stored = JSON.parse(sessionStorage.getItem(eventKey));
          sessionStorage.removeItem(eventKey);
        } catch (error) { /* Storage is disabled, or the text is not JSON. */ }
        send(stored);
      }
      if (page.usesOwnLoader) {
        const connect = (message) => {
          if (message.source !== window.parent || !message.data || message.data.type !== "hearth-connect") return;
          window.removeEventListener("message", connect);
          const port = message.ports[0];
          const handlers = {};
          port.onmessage = (received) => {
            const { name, id, data } = received.data;
            if (id !== undefined) port.postMessage({ reply: id, data: [handlers[name] ? handlers[name](data) : null] });
          };
          start((name, handler) => { handlers[name] = handler; }, (name, data) => port.postMessage({ name, data }));
        };
        window.addEventListener("message", connect);
        return;
      }
      window.gapi_onload = () => gapi.load("gapi.iframes", {
        callback: () => {
          const parent = gapi.iframes.getContext().getParentIframe();
          const filter = gapi.iframes.CROSS_ORIGIN_IFRAMES_FILTER;
          // The SDK may not listen yet. It ignores an event that it has received before.
          const post = (name, data, tries) => parent.send(name, data, (replies) => {
            const last = replies && replies[replies.length - 1];
            if ((!last || last.status !== "ACK") && tries > 1) setTimeout(() => post(name, data, tries - 1), 250);
          }, filter);
          start((name, handler) => parent.register(name, handler, filter), (name, data) => post(name, data, 20));
        }
      });
      const script = document.createElement("script");
      script.src = "https://apis.google.com/js/api.js";
      document.head.append(script);
    })();
    """#

  /// The loader for the pages of apps: the part of Google's frame library that the web SDK uses. An app that includes
  /// it needs no script of Google for sign-in.
  static let loader = #"""
    // The frame library of this server, for signInWithPopup and signInWithRedirect without a script of another host.
    (function () {
      "use strict";
      const gapi = window.gapi = window.gapi || {};
      if (gapi.iframes && gapi.iframes.Iframe) return;
      class Iframe {
        constructor(options) {
          const url = new URL(options.url, location.href);
          url.searchParams.set("loader", "own");
          const channel = new MessageChannel();
          this.port = channel.port1;
          this.handlers = {};
          this.early = [];
          this.replies = new Map();
          this.count = 0;
          const element = document.createElement("iframe");
          for (const [name, value] of Object.entries(options.attributes || {})) {
            if (name === "style") Object.assign(element.style, value); else element.setAttribute(name, value);
          }
          element.title = "Sign-in";
          element.addEventListener("load", () => {
            element.contentWindow.postMessage({ type: "hearth-connect" }, url.origin, [channel.port2]);
          }, { once: true });
          this.port.onmessage = (message) => this.receive(message.data);
          element.src = url.href;
          options.where.appendChild(element);
        }
        receive(message) {
          if (message.reply !== undefined) {
            const reply = this.replies.get(message.reply);
            this.replies.delete(message.reply);
            if (reply) reply(message.data);
          } else if (this.handlers[message.name]) {
            this.handlers[message.name](message.data);
          } else if (this.early.length < 16) {
            this.early.push(message);
          }
        }
        register(name, handler) {
          this.handlers[name] = handler;
          const early = this.early;
          this.early = [];
          for (const message of early) this.receive(message);
        }
        send(name, data, callback) {
          this.count += 1;
          this.replies.set(this.count, callback || (() => {}));
          this.port.postMessage({ name, id: this.count, data });
        }
        ping(callback) {
          return new Promise((resolve) => this.send("ping", null, (data) => {
            if (callback) callback(data);
            resolve(data);
          }));
        }
        restyle() { return Promise.resolve([]); }
      }
      const context = {
        open(options, opened) {
          const frame = new Iframe(options);
          return opened ? opened(frame) : Promise.resolve(frame);
        }
      };
      gapi.iframes = { Iframe, CROSS_ORIGIN_IFRAMES_FILTER: () => true, getContext: () => context };
      gapi.load = gapi.load || ((names, options) => {
        const callback = typeof options === "function" ? options : options && options.callback;
        if (callback) callback();
      });
    })();
    """#
}
