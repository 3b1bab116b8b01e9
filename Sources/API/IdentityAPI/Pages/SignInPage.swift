import Accounts
import IdentityService
import WireFormat

/// The HTML of the sign-in pages. Each page contains its style, its script and its data, and loads nothing else.
struct SignInPage {
  /// The name of a script and a style that the browser may run, new for each response.
  let nonce = RandomBytes.text(16)
  /// The text of the page.
  private(set) var html: [UInt8] = []

  /// The policy for the browser: only parts with the nonce run, and no other page can contain this one.
  var policy: String {
    "default-src 'none'; script-src 'nonce-\(nonce)'; style-src 'nonce-\(nonce)'; base-uri 'none'; "
      + "form-action 'none'; frame-ancestors 'none'"
  }

  // MARK: Pages

  /// The page on which a developer chooses an account of an emulator.
  static func chooser(_ app: WaitingApp, providerID: String, accounts: [User.LinkedProvider]) -> SignInPage {
    let name = escaped(providerName(providerID))
    let body = """
      <section id="choose" data-view hidden>
      <span class="badge">Emulator</span>
      <h1 tabindex="-1">Sign in with \(name)</h1>
      <p>Choose one of the test accounts. \(name) is not involved.</p>
      <ul id="accounts" aria-label="Test accounts"></ul>
      <div class="actions"><button type="button" class="first" id="add">Add an account</button>
      <button type="button" data-cancel>Cancel</button></div>
      </section>
      <section id="describe" data-view hidden>
      <span class="badge">Emulator</span>
      <h1 tabindex="-1">New \(name) account</h1>
      <p>Describe a test account, or <button type="button" class="link" id="generate">generate one</button>.</p>
      <form id="new" novalidate>
      <div class="field"><label for="email">Email <span class="optional">(optional)</span></label>
      <input id="email" type="email" autocomplete="off" spellcheck="false" aria-describedby="email-error">
      <div class="bad" id="email-error" role="alert"></div></div>
      <div class="field"><label for="name">Display name <span class="optional">(optional)</span></label>
      <input id="name" autocomplete="off"></div>
      <div class="field"><label for="picture">Photo URL <span class="optional">(optional)</span></label>
      <input id="picture" type="url" autocomplete="off" spellcheck="false"></div>
      <div class="check"><input id="verified" type="checkbox" checked>
      <label for="verified">\(name) has verified the email address</label></div>
      <div class="actions"><button type="submit" class="first" id="submit">Sign in</button>
      <button type="button" id="back">Back</button><button type="button" data-cancel>Cancel</button></div>
      </form>
      </section>
      \(endings)
      """
    return SignInPage(
      title: "Sign in with \(name)", body: body, scripts: [PageScripts.delivery, PageScripts.chooser]
    ) { json in
      json.members(app)
      json.text("providerID", providerID)
      json.array("accounts", accounts) { account, json in
        json.object { json in
          json.text("sub", account.rawID)
          json.member("email", account.email)
          json.member("name", account.displayName)
          json.member("screenName", account.screenName)
          json.member("picture", account.photoURL)
          // The official emulator's page says so too: an account that exists was confirmed when it was added.
          json.boolean("isVerified", true)
        }
      }
    }
  }

  /// The page that gives the result of a sign-in to the app.
  /// - Parameter identity: the provider and the name of the identity, or the reason why the sign-in failed.
  static func result(
    _ app: WaitingApp, pageURL: String, _ identity: Result<(providerID: String, name: String), SignInFailure>
  ) -> SignInPage {
    let body = """
      <section id="wait" data-view>
      <div class="wait" aria-hidden="true"></div>
      <h1 tabindex="-1">Signing in</h1>
      <p role="status">One moment, please.</p>
      </section>
      \(endings)
      """
    return SignInPage(title: "Signing in", body: body, scripts: [PageScripts.delivery, PageScripts.result]) { json in
      json.members(app)
      json.object("event") { json in
        json.text("type", app.authType)
        json.member("eventId", app.eventID)
        switch identity {
        case .success(let (providerID, name)):
          let parameters = FormText.text([("id_token", name), ("providerId", providerID)])
          json.text("urlResponse", pageURL)
          json.text("sessionId", RandomBytes.text(16))
          json.text("postBody", parameters)
        case .failure(let failure):
          json.object("error") { json in
            json.text("code", failure.code)
            json.text("message", failure.text)
          }
        }
      }
    }
  }

  /// The page for a request that belongs to no app.
  static func failure(_ failure: SignInFailure) -> SignInPage {
    let body = """
      <section>
      <h1 tabindex="-1">Sign-in is not possible</h1>
      <p role="alert">\(escaped(failure.text))</p>
      <p class="code">\(escaped(failure.code))</p>
      </section>
      """
    return SignInPage(title: "Sign-in is not possible", body: body, scripts: []) { _ in }
  }

  /// The views that each page ends with.
  private static let endings = """
    <section id="done" data-view hidden>
    <h1 tabindex="-1">Done</h1>
    <p role="status">The app continues in its own window. You can close this one.</p>
    </section>
    <section id="lost" data-view hidden>
    <h1 tabindex="-1">The app is gone</h1>
    <p role="alert">The page of the app that opened this window is closed, or it does not wait for a sign-in. Close this
    window and try again in the app.</p>
    </section>
    """

  private init(title: String, body: String, scripts: [String], data: (inout JSONWriter) -> Void) {
    html += Array(
      """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <title>\(title)</title>
      <style nonce="\(nonce)">
      \(PageStyle.text)
      </style>
      </head>
      <body>
      <main>
      \(body)
      </main>

      """.utf8)
    html += Self.dataBlock(data)
    if !scripts.isEmpty {
      html += Array("<script nonce=\"\(nonce)\">\n\(scripts.joined(separator: "\n"))\n</script>\n".utf8)
    }
    html += Array("</body>\n</html>\n".utf8)
  }

  // MARK: Parts

  /// Returns an element that contains data for the script. It escapes the characters that could end the element.
  static func dataBlock(_ data: (inout JSONWriter) -> Void) -> [UInt8] {
    var json = JSONWriter(.compact)
    json.object { data(&$0) }
    var html = Array("<script type=\"application/json\" id=\"page\">".utf8)
    for byte in json.bytes {
      switch byte {
      case UInt8(ascii: "<"): html += Array("\\u003c".utf8)
      case UInt8(ascii: ">"): html += Array("\\u003e".utf8)
      case UInt8(ascii: "&"): html += Array("\\u0026".utf8)
      default: html.append(byte)
      }
    }
    return html + Array("</script>\n".utf8)
  }

  /// Returns a text for the content of an element.
  static func escaped(_ text: String) -> String {
    var out: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "<"): out += Array("&lt;".utf8)
      case UInt8(ascii: ">"): out += Array("&gt;".utf8)
      case UInt8(ascii: "&"): out += Array("&amp;".utf8)
      case UInt8(ascii: "\""): out += Array("&quot;".utf8)
      default: out.append(byte)
      }
    }
    return String(decoding: out, as: UTF8.self)
  }

  /// Returns the name of a provider for people.
  static func providerName(_ id: String) -> String {
    let names = [
      "google.com": "Google", "apple.com": "Apple", "facebook.com": "Facebook", "github.com": "GitHub",
      "microsoft.com": "Microsoft", "twitter.com": "Twitter", "yahoo.com": "Yahoo",
    ]
    if let name = names[id] { return name }
    return id.hasPrefix("oidc.") ? String(id.dropFirst(5)) : id
  }
}

extension JSONWriter {
  /// Appends the app that waits for a sign-in, for ``PageScripts/delivery``.
  fileprivate mutating func members(_ app: WaitingApp) {
    text("apiKey", app.apiKey)
    text("appName", app.appName)
    text("authType", app.authType)
    member("eventID", app.eventID)
    text("pageURL", app.pageURL)
  }
}
