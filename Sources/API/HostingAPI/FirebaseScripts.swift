import DatabaseService
package import GatewayCore
package import Hosting
import Transport
import WireFormat

/// Serves the scripts that Firebase Hosting serves below `/__/firebase/` (Firebase's documentation of Hosting, "Load
/// Firebase SDKs from reserved URLs").
///
/// - `init.js` configures the web SDK that the page has loaded, and points its Firestore, Auth and Storage at this
///   server.
/// - `init.json` is the configuration alone.
/// - `VERSION/FILE` is a file of the web SDK: from a folder of the operator, or else from Google by a redirect.
package final class FirebaseScripts: API {
  package let authenticator: Authenticator
  private let project: String
  /// The web SDK, if a folder contains it.
  private let sdk: SiteResponder?

  /// Creates the API.
  ///
  /// - Parameters:
  ///   - project: the project of the app.
  ///   - sdk: a site with a folder for each version of the web SDK, or `nil`.
  package init(project: String, sdk: HostedSites?, _ authenticator: Authenticator) {
    self.project = project
    self.authenticator = authenticator
    self.sdk = sdk.map { SiteResponder($0) }
  }

  /// The requests that the API handles.
  package static var routes: [Route<FirebaseScripts>] {
    [
      Route([.get, .head], ["/__/firebase/init.js"], kind: .hosting, access: .everyone) { api, _, call in
        call.responder.send(api.script, type: "text/javascript; charset=utf-8")
      },
      Route([.get, .head], ["/__/firebase/init.json"], kind: .hosting, access: .everyone) { api, request, call in
        call.responder.send(api.json(host: request.header("host")), type: "application/json; charset=utf-8")
      },
      Route([.get, .head], ["/__/firebase/{version}/{file}"], kind: .hosting, access: .everyone) {
        api, request, call in
        api.sendSDK(request, call)
      },
    ]
  }

  /// The configuration of the app. `host` is the value of a `Host` field.
  private func json(host: UnsafeRawBufferPointer?) -> [UInt8] {
    var json = JSONWriter(.pretty)
    json.beginObject()
    let isName = host.map {
      $0.allSatisfy { $0 &- 0x30 < 10 || ($0 | 0x20) &- 0x61 < 26 || "-._:[]".utf8.contains($0) }
    }
    if let host, isName == true, !host.isEmpty {
      json.key("authDomain")
      json.string(host)
    }
    json.key("apiKey")
    json.string("hearth")
    json.key("projectId")
    json.string(project)
    json.key("storageBucket")
    json.string("\(project).appspot.com")
    json.endObject()
    return json.finish()
  }

  /// The content of `init.js`. The page's own URL of the script says where the server is, so that it also works behind
  /// proxies.
  private var script: [UInt8] {
    let configuration = String(decoding: json(host: nil), as: UTF8.self)
    return Array(
      """
      if (typeof firebase === "undefined") {
        throw new Error("/__/firebase/init.js: load the compat build of the Firebase SDK before this script");
      }
      (function () {
        var script = document.currentScript;
        var server = new URL(script && script.src ? script.src : location.href);
        var isSecure = server.protocol === "https:";
        var port = Number(server.port) || (isSecure ? 443 : 80);
        var configuration = \(configuration);
        configuration.authDomain = server.host;
        firebase.initializeApp(configuration);
        if (typeof firebase.auth === "function") {
          firebase.auth().useEmulator(server.origin, { disableWarnings: true });
        }
        if (typeof firebase.firestore === "function") {
          firebase.firestore().settings({ host: server.host, ssl: isSecure, merge: true });
        }
        if (typeof firebase.storage === "function") {
          var storage = firebase.storage();
          storage.useEmulator(server.hostname, port);
          // useEmulator uses plain HTTP. The SDK has no function that changes that.
          var service = storage._delegate || storage;
          if (isSecure && typeof service._protocol === "string") service._protocol = "https";
          else if (isSecure) service.host = String(service.host).replace(/^http:/, "https:");
        }
      })();

      """.utf8)
  }

  /// The place of the web SDK's files at Google.
  private static let origin = "https://www.gstatic.com/firebasejs/"

  private func sendSDK(_ request: borrowing HTTPRequest, _ call: RoutedCall) {
    let (version, file) = (call.part(0, of: request), call.part(1, of: request))
    guard Self.isName(version), Self.isName(file) else {
      return call.responder.sendText(404, "Not Found\n")
    }
    guard let sdk else {
      let names = String(decoding: version, as: UTF8.self) + "/" + String(decoding: file, as: UTF8.self)
      return call.responder.sendRedirect(to: Self.origin + names, status: 302)
    }
    let start = "/__/firebase".utf8.count
    sdk.respond(UnsafeRawBufferPointer(rebasing: request.target.pathAndQuery.path[start...]), request, call.responder)
  }

  /// Whether a segment can be a part of the SDK's URLs.
  private static func isName(_ text: UnsafeRawBufferPointer) -> Bool {
    text.count <= 100 && text.first.map { $0 != UInt8(ascii: ".") } ?? false
      && text.allSatisfy { $0 &- 0x30 < 10 || ($0 | 0x20) &- 0x61 < 26 || "-._".utf8.contains($0) }
  }
}

extension Responder {
  /// Responds with a text that clients may keep but must check before they use it.
  fileprivate func send(_ body: [UInt8], type: StaticString) {
    exchange.respond(
      status: 200,
      headers: { headers in
        headers.add("Content-Type", type)
        headers.add("Cache-Control", "no-cache")
        headers.add("X-Content-Type-Options", "nosniff")
      }, body: { $0.append(contentsOf: body) })
  }
}
