import GatewayCore
import Synchronization
import WireFormat

/// The addresses of an emulator's services, as the hub of Firebase's Emulator Suite lists them. Test libraries find the
/// services by this list, whose address is in `FIREBASE_EMULATOR_HUB`.
package final class EmulatorHub: Sendable {
  /// The address of one service.
  package struct Service: Sendable, Equatable {
    /// The name by which clients find the service: `auth`, `firestore`, `hub` or `storage`.
    package var name: String
    package var port: Int

    package init(_ name: String, port: Int) {
      self.name = name
      self.port = port
    }
  }

  private struct Listening {
    let host: String
    let services: [Service]
    let ownPort: Int?
  }

  private let listening = Mutex<Listening?>(nil)

  /// Creates a hub that lists no services. A server that does not listen has none.
  package init() {}

  /// Sets the services to list. `host` is the numeric address on which all of them listen. `ownPort` is the port that
  /// only the hub has, or `nil` if the hub shares the port of another service.
  package func announce(_ services: [Service], host: String, ownPort: Int?) {
    listening.withLock { $0 = Listening(host: host, services: services, ownPort: ownPort) }
  }

  /// The port that only the hub has.
  var ownPort: Int? { listening.withLock { $0?.ownPort } }

  /// Returns the response to `GET /` at the hub's own port, or `nil` without such a port.
  func locator(version: String) -> [UInt8]? {
    guard let now = listening.withLock({ $0 }), let port = now.ownPort else { return nil }
    let host = Self.connectable(now.host)
    var json = JSONWriter(.compact)
    json.beginObject()
    json.key("version")
    json.string(version)
    json.key("origins")
    json.beginArray()
    json.string("http://\(host.contains(":") ? "[\(host)]" : host):\(port)")
    json.endArray()
    json.key("host")
    json.string(host)
    json.key("port")
    json.number(port)
    json.endObject()
    return json.finish()
  }

  /// Returns the response to `GET /emulators`: an object with a member for each service.
  func emulators() -> [UInt8] {
    var json = JSONWriter(.compact)
    json.beginObject()
    if let now = listening.withLock({ $0 }) {
      for service in now.services {
        Array(service.name.utf8).withUnsafeBytes { json.key($0) }
        json.beginObject()
        json.key("listen")
        json.beginArray()
        json.beginObject()
        json.key("address")
        json.string(now.host)
        json.key("family")
        json.string(now.host.contains(":") ? "IPv6" : "IPv4")
        json.key("port")
        json.number(service.port)
        json.endObject()
        json.endArray()
        json.key("name")
        json.string(service.name)
        json.key("host")
        json.string(Self.connectable(now.host))
        json.key("port")
        json.number(service.port)
        json.endObject()
      }
    }
    json.endObject()
    return json.finish()
  }

  /// Returns the address that clients connect to. If the server listens on all addresses, this is loopback.
  private static func connectable(_ host: String) -> String {
    switch host {
    case "0.0.0.0": "127.0.0.1"
    case "::": "::1"
    default: host
    }
  }
}
