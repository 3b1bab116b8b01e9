import Basics
import DocumentModel
package import GatewayCore
import Transport

/// Serves the console: a page with which developers look at the data of an emulator, and see why rules decide as they
/// do. A production server serves it at an address of its own, to operators who sign in there.
///
/// The page shares its origin with an API and with files that users upload, so its policy admits only scripts and
/// style sheets with the nonce of the response, no markup from strings, and no frames. The page uses no cookies.
package final class ConsolePages: API {
  package let authenticator: Authenticator
  private let project: String
  private let version: String
  /// Whether the page is for the operators of a production server.
  private let isForOperators: Bool

  /// The path of the page.
  package static let path = "/_/console/"

  /// Creates the API for a project.
  package init(project: String, version: String, _ authenticator: Authenticator) {
    self.project = project
    self.version = version
    self.authenticator = authenticator
    isForOperators = false
  }

  /// Creates the API for the operators of a production server. `project` is its project, or empty if it has several.
  package init(forOperatorsOf project: String, version: String) {
    self.project = project
    self.version = version
    authenticator = Authenticator(verifier: nil, mode: .production)
    isForOperators = true
  }

  /// The requests that the API handles.
  package static var routes: [Route<ConsolePages>] {
    [
      Route([.get, .head], ["/_/console"], kind: .operations, access: .everyone) { pages, request, call in
        guard pages.admits(request, call.responder) else { return }
        call.responder.sendRedirect(to: path, status: 308)
      },
      Route([.get, .head], [path], kind: .operations, access: .everyone) { pages, request, call in
        guard pages.admits(request, call.responder) else { return }
        pages.sendPage(call.responder)
      },
      Route([.get, .head], ["\(path)a/{digest}/{name}"], kind: .operations, access: .everyone) { pages, request, call in
        guard pages.admits(request, call.responder) else { return }
        let (digest, name) = (call.part(0, of: request), call.part(1, of: request))
        let asset = ConsoleAsset.script
        guard name.elementsEqual(asset.name.utf8), digest.elementsEqual(asset.digest.utf8) else {
          return Self.refuse(404, "Not Found\n", call.responder)
        }
        Self.send(asset, acceptsGzip: request.acceptsGzip, call.responder)
      },
    ]
  }

  /// Whether the console is for a request. If not, responds.
  private func admits(_ request: borrowing HTTPRequest, _ responder: Responder) -> Bool {
    guard authenticator.isForEmulator || isForOperators else {
      Self.refuse(404, "Not Found\n", responder)
      return false
    }
    // Browsers say for what they load a file. Scripts, workers and frames of other pages must not load the console.
    if let site = request.header("sec-fetch-site") {
      let isOwn = site.elementsEqual("same-origin".utf8) || site.elementsEqual("none".utf8)
      let isNavigation = request.header("sec-fetch-dest")?.elementsEqual("document".utf8) ?? false
      guard isOwn || isNavigation else {
        Self.refuse(403, "Another page cannot load the console.\n", responder)
        return false
      }
    }
    // A site can let its name lead to this machine, and would then be the origin of the page. The address for operators
    // has checked the names already.
    guard isForOperators || !request.isFromForeignPage(hostName: authenticator.hostName) else {
      Self.refuse(
        421,
        "Open the console under localhost, a numeric address, a name without dots, or the name in --host.\n", responder)
      return false
    }
    return true
  }

  private func sendPage(_ responder: Responder) {
    var random = SystemRandomNumberGenerator()
    let nonce = Hexadecimal.text((0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    let page = ConsoleAsset.page
      .replacing("{{nonce}}", with: nonce)
      .replacing("{{project}}", with: Self.escaped(project))
      .replacing("{{mode}}", with: isForOperators ? "production" : "emulator")
      .replacing("{{version}}", with: Self.escaped(version))
    responder.exchange.respond(
      status: 200,
      headers: { headers in
        headers.add("Content-Type", "text/html; charset=utf-8")
        headers.add("Cache-Control", "no-store")
        headers.add(
          "Content-Security-Policy",
          "default-src 'none'; script-src 'nonce-\(nonce)'; style-src 'nonce-\(nonce)'; img-src 'self' blob: data:; "
            + "media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
            + "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
        headers.add("X-Frame-Options", "DENY")
        headers.add("Cross-Origin-Opener-Policy", "same-origin")
        headers.add("Permissions-Policy", "clipboard-write=(self)")
        Self.addCommon(&headers)
      },
      body: { $0.append(contentsOf: page.utf8) })
  }

  private static func send(_ asset: ConsoleAsset, acceptsGzip: Bool, _ responder: Responder) {
    let compressed = acceptsGzip ? asset.compressed : nil
    responder.exchange.respond(
      status: 200,
      headers: { headers in
        headers.add("Content-Type", asset.type)
        headers.add("Cache-Control", "public, max-age=31536000, immutable")
        headers.add("Vary", "Accept-Encoding")
        if compressed != nil { headers.add("Content-Encoding", "gzip") }
        addCommon(&headers)
      }, compressible: false, body: { $0.append(contentsOf: compressed ?? asset.bytes) })
  }

  private static func refuse(_ status: Int, _ text: StaticString, _ responder: Responder) {
    responder.exchange.respond(
      status: status,
      headers: { headers in
        headers.add("Content-Type", "text/plain; charset=utf-8")
        headers.add("Cache-Control", "no-store")
        addCommon(&headers)
      },
      body: { $0.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)) })
  }

  /// The headers of every response. No response has CORS headers.
  private static func addCommon(_ headers: inout HeaderWriter) {
    headers.add("X-Content-Type-Options", "nosniff")
    headers.add("Referrer-Policy", "no-referrer")
    headers.add("Cross-Origin-Resource-Policy", "same-origin")
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("\"", with: "&quot;").replacing("<", with: "&lt;")
  }
}

extension HTTPRequest {
  /// Whether the client accepts gzip.
  fileprivate var acceptsGzip: Bool {
    guard let field = header("accept-encoding") else { return false }
    return String(decoding: field, as: UTF8.self).split(separator: ",").contains { coding in
      let parts = coding.split(separator: ";")
      let name = parts[0].filter { $0 != " " }.lowercased()
      return name == "gzip" && !parts.dropFirst().contains { $0.filter { $0 != " " } == "q=0" }
    }
  }
}
