import Files
import Glibc

/// The socket unit of systemd that holds the address of the packaged service. If it is enabled, the server ignores its
/// own host and port.
struct SocketUnit: Equatable {
  /// The file of the unit.
  let path: String
  /// The values of `ListenStream=` that are in force.
  let addresses: [String]

  /// The folders of units, the most important first.
  static let folders = ["/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"]

  /// Returns the unit if it is enabled and belongs to a service with this configuration file; otherwise `nil`.
  init?(ofConfiguration file: String, in folders: [String] = SocketUnit.folders) {
    guard let service = Self.unit("hearth.service", in: folders),
      Self.values(of: "ExecStart", service.text).contains(where: { Self.names(file, $0) }),
      folders.contains(where: { access("\($0)/sockets.target.wants/hearth.socket", F_OK) == 0 }),
      let socket = Self.unit("hearth.socket", in: folders)
    else { return nil }
    path = socket.path
    addresses = Self.values(of: "ListenStream", socket.text)
  }

  /// The host and the port of an address such as `127.0.0.1:8080`, `[::]:443` or `8080`, or `nil` for another socket.
  static func endpoint(_ address: String) -> (host: String, port: Int)? {
    // systemd listens on all addresses if the unit names only a port.
    if let port = Int(address) { return ("::", port) }
    guard let colon = address.lastIndex(of: ":"), let port = Int(address[address.index(after: colon)...]) else {
      return nil
    }
    let host = address[..<colon]
    return (host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : String(host), port)
  }

  /// Whether a command line of a service contains a configuration file.
  private static func names(_ file: String, _ command: String) -> Bool {
    let words = command.split(separator: " ").map(String.init)
    guard let option = words.firstIndex(where: { $0 == "--config" || $0.hasPrefix("--config=") }) else { return false }
    let named =
      words[option] == "--config"
      ? words.dropFirst(option + 1).first ?? "" : String(words[option].dropFirst("--config=".count))
    return named == file
  }

  /// Returns the text of a unit, followed by those of its drop-ins, and the path of its file.
  private static func unit(_ name: String, in folders: [String]) -> (path: String, text: String)? {
    for folder in folders {
      let path = "\(folder)/\(name)"
      guard let bytes = try? ConfigurationFile.bytes(of: path) else { continue }
      var text = String(decoding: bytes, as: UTF8.self)
      for file in dropIns(name, in: folders) {
        guard let bytes = try? ConfigurationFile.bytes(of: file) else { continue }
        text += "\n" + String(decoding: bytes, as: UTF8.self)
      }
      return (path, text)
    }
    return nil
  }

  /// Returns the drop-ins of a unit in the order of their names. One in a folder replaces those of the same name in later
  /// folders.
  private static func dropIns(_ name: String, in folders: [String]) -> [String] {
    var files: [String: String] = [:]
    for folder in folders.reversed() {
      let place = "\(folder)/\(name).d"
      for file in ContentDirectory.names(in: place) where file.hasSuffix(".conf") { files[file] = "\(place)/\(file)" }
    }
    return files.sorted { $0.key < $1.key }.map(\.value)
  }

  /// Returns the values of a setting. An empty value removes the earlier ones.
  private static func values(of name: String, _ text: String) -> [String] {
    var values: [String] = []
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, trimmed(parts[0]) == name else { continue }
      let value = trimmed(parts[1])
      if value.isEmpty { values = [] } else { values.append(value) }
    }
    return values
  }

  private static func trimmed(_ text: Substring) -> String {
    let start = text.drop { $0 == " " || $0 == "\t" || $0 == "\r" }
    return String(start.reversed().drop { $0 == " " || $0 == "\t" || $0 == "\r" }.reversed())
  }

  /// Returns the findings about the unit, apart from those about who reaches its address.
  /// - Parameter named: the address that options or the configuration file set, or `nil` if none do.
  func findings(named: (host: String, port: Int)?) -> [Finding] {
    let topic = "socket"
    guard addresses.count == 1 else {
      return [
        .problem(
          topic, "\(path) has \(addresses.count) lines ListenStream=, but the server listens on one socket",
          "Keep one line, with systemctl edit hearth.socket.")
      ]
    }
    guard let found = Self.endpoint(addresses[0]) else {
      return [
        .problem(
          topic, "\(path) listens on \(addresses[0]), which is not an address with a port",
          "Set ListenStream= to an address such as 127.0.0.1:8080.")
      ]
    }
    if let named, named != found {
      return [
        .warning(
          topic, "\(path) listens on \(addresses[0]), so the server ignores \(named.host):\(named.port)",
          "Remove host and port from the configuration, or change ListenStream= with systemctl edit hearth.socket.")
      ]
    }
    return [.ok(topic, "\(path) listens on \(addresses[0])")]
  }
}
