import Glibc
import Hosting
import WireFormat

/// `firebase.json` in the working directory, in which a project for the Firebase tools names its rules and indexes.
///
///     {"firestore": {"rules": "firestore.rules", "indexes": "firestore.indexes.json"},
///      "storage": {"rules": "storage.rules"}, "emulators": {"firestore": {"port": 8080}, "auth": {"port": 9099}}}
///
/// Its paths are relative to the working directory. The settings of emulators apply in emulator mode only. `firestore`
/// may be an array whose members each have a `database`. Other tools share the file, so other members are ignored; a
/// message names those that configure a service which Hearth does not have. Comments are allowed, as
/// the Firebase tools allow them.
enum FirebaseFile {
  static let name = "firebase.json"

  /// Returns the settings of the file as options of `hearth serve`, or an empty dictionary if the file does not exist.
  /// `folder` contains the file, and its paths are relative to it; `nil` means the working directory.
  /// - Throws: ``CommandFailure`` if a member is invalid; the message names its key.
  static func settings(isEmulator: Bool, in folder: String? = nil) throws -> [String: Arguments.Setting] {
    let file = folder.map { "\($0)/\(name)" } ?? name
    guard let bytes = try ConfigurationFile.bytes(of: file) else { return [:] }
    let values = try parse(bytes, isEmulator: isEmulator)
    let files = [("firestore.rules", "rules"), ("firestore.indexes", "indexes"), ("storage.rules", "storage-rules")]
    for (key, option) in files {
      for value in values[option] ?? [] {
        // Strips DATABASE= from DATABASE=FILE.
        let isPath = value.hasPrefix("./") || value.hasPrefix("/") || option == "storage-rules"
        let path = isPath ? value : value.split(separator: "=", maxSplits: 1).last.map(String.init) ?? value
        guard access(path.hasPrefix("/") ? path : folder.map { "\($0)/\(path)" } ?? path, R_OK) == 0 else {
          throw CommandFailure.data(
            "\(file): \"\(key)\" names \(path), which cannot be read: \(String(cString: strerror(errno)))")
        }
      }
    }
    var settings = values.mapValues { Arguments.Setting(values: $0, origin: file) }
    if let entry = hostingEntries(of: file).first {
      let path = entry.folder.hasPrefix("/") ? entry.folder : folder.map { "\($0)/\(entry.folder)" } ?? entry.folder
      if access(path, X_OK) == 0 { settings["hosting"] = Arguments.Setting(values: [name], origin: file) }
    }
    return settings
  }

  /// Returns the entries of `hosting`, or none if the file does not exist or is not valid.
  static func hostingEntries(of file: String = name) -> [HostingEntry] {
    guard let bytes = try? ConfigurationFile.bytes(of: file) else { return [] }
    return (try? HostingFile.read(bytes)) ?? []
  }

  /// Returns the log line about the options that came from the file, or `nil` if none did.
  static func announcement(of arguments: Arguments) -> String? {
    guard !arguments.has("config") else { return nil }
    let taken = Command.serve.options.filter { arguments.origins[$0.name] == name }
    guard !taken.isEmpty else { return nil }
    let texts = taken.flatMap { option in arguments.values(option.name).map { "--\(option.name) \($0)" } }
    return "taken from \(name): \(texts.joined(separator: " "))"
  }

  /// Returns the messages about parts of the file that have no effect. The result is empty if `--config` replaces the
  /// file.
  /// - Throws: ``CommandFailure`` if the file is not valid.
  static func remarks(_ arguments: Arguments) throws -> [String] {
    guard !arguments.has("config"), let bytes = try ConfigurationFile.bytes(of: name) else { return [] }
    return try hostingRemarks(arguments)
      + remarks(bytes, host: arguments.value("host"), isEmulator: arguments.has("emulator"))
  }

  private static func hostingRemarks(_ arguments: Arguments) -> [String] {
    let entries = hostingEntries()
    if let entry = entries.first, !arguments.has("hosting") {
      return ["\(name): hosting.public names \(entry.folder), which does not exist, so the web app is not served"]
    }
    guard entries.count > 1, arguments.origins["hosting"] == name else { return [] }
    return ["\(name): only the first entry of \"hosting\" is served; serve others with --hosting HOST=\(name)#TARGET"]
  }

  /// The services that have a port of their own in `firebase.json`.
  static let ports: [StaticString] = ["auth", "storage", "hub"]

  /// The services of `firebase.json` that Hearth does not have.
  private static let unserved: [StaticString] = [
    "functions", "database", "pubsub", "eventarc", "dataconnect", "tasks", "extensions", "apphosting",
    "remoteconfig", "ui", "logging",
  ]

  /// Returns the messages about parts of the file that have no effect. `host` is the address to listen on, or `nil` for
  /// the default. The settings of emulators concern an emulator only.
  /// - Throws: ``CommandFailure`` if the text is not JSON.
  static func remarks(_ bytes: [UInt8], host: String?, isEmulator: Bool = true) throws -> [String] {
    do {
      return try JSONText.read(JSONComments.removed(from: bytes)) { root in
        let emulators = isEmulator ? root.member("emulators") : nil
        var lines: [String] = []
        let names = unserved.filter { name in
          [root, emulators].contains { isUsed($0?.member(name)) }
        }
        if !names.isEmpty {
          let list = names.map { "\($0)" }.joined(separator: ", ")
          lines.append("\(Self.name) configures services that hearth does not have: \(list)")
        }
        let own = host ?? "127.0.0.1"
        let isSame = { (other: String) in other == own || other == "localhost" && own == "127.0.0.1" }
        for service in ports {
          guard let other = emulators?.member(service)?.member("host")?.text, !isSame(other) else { continue }
          lines.append("\(Self.name): emulators.\(service).host is ignored: all ports listen on \(own) (--host)")
        }
        return lines
      }
    } catch let error as WireError { throw CommandFailure.data("\(name): \(error.description)") }
  }

  /// Whether a member configures a service. The Firebase tools write `{}` for services that are not in use.
  private static func isUsed(_ value: JSONValue?) -> Bool {
    switch value?.kind {
    case nil, .null, .boolean: return false
    case .object(var members):
      if case .boolean(false) = value?.member("enabled")?.kind { return false }
      return members.next() != nil
    case .array: return value?.array.isEmpty == false
    default: return true
    }
  }

  /// Parses the file's text into values of `hearth serve` options.
  /// - Throws: ``CommandFailure`` if a member is invalid; the message names its key.
  static func parse(_ bytes: [UInt8], isEmulator: Bool) throws -> [String: [String]] {
    do {
      return try JSONText.read(JSONComments.removed(from: bytes)) { root in
        guard case .object = root.kind else { throw CommandFailure.data("\(name): must be a JSON object") }
        var values: [String: [String]] = [:]
        try readFirestore(root, into: &values)
        try readStorage(root, into: &values)
        if isEmulator, let emulator = root.member("emulators")?.member("firestore") {
          if let host = emulator.member("host") { values["host"] = [try text(host, "emulators.firestore.host")] }
          if let port = emulator.member("port") {
            guard let number = port.integer else { throw wrong("emulators.firestore.port", "a whole number") }
            values["port"] = [String(number)]
          }
        }
        if isEmulator {
          for service in ports {
            guard let port = root.member("emulators")?.member(service)?.member("port") else { continue }
            guard let number = port.integer else { throw wrong("emulators.\(service).port", "a whole number") }
            values["\(service)-port"] = [String(number)]
          }
        }
        return values
      }
    } catch let error as WireError { throw CommandFailure.data("\(name): \(error.description)") }
  }

  private static func readFirestore(_ root: JSONValue, into values: inout [String: [String]]) throws {
    guard let firestore = root.member("firestore") else { return }
    var isList = false
    if case .array = firestore.kind { isList = true }
    for entry in isList ? firestore.array : [firestore] {
      let database = try entry.member("database").map { try text($0, "firestore.database") } ?? "(default)"
      for (key, option) in [("rules", "rules"), ("indexes", "indexes")] {
        guard let member = key == "rules" ? entry.member("rules") : entry.member("indexes") else { continue }
        let path = try text(member, "firestore.\(key)")
        // The rules of the default database also apply to databases without rules of their own.
        values[option, default: []].append(database == "(default)" ? plain(path) : "\(database)=\(path)")
      }
    }
  }

  private static func readStorage(_ root: JSONValue, into values: inout [String: [String]]) throws {
    guard let storage = root.member("storage") else { return }
    var isList = false
    if case .array = storage.kind { isList = true }
    let files = try (isList ? storage.array : [storage]).compactMap { entry in
      try entry.member("rules").map { try text($0, "storage.rules") }
    }
    guard let first = files.first else { return }
    guard files.allSatisfy({ $0 == first }) else {
      throw CommandFailure.data(
        "\(name): \"storage\" names several rules files, but all buckets share one here; "
          + "choose it with --storage-rules")
    }
    values["storage-rules"] = [first]
  }

  /// Returns the path in a form that is not mistaken for `DATABASE=FILE`.
  private static func plain(_ path: String) -> String {
    path.contains("=") && !path.hasPrefix("/") && !path.hasPrefix("./") ? "./" + path : path
  }

  private static func text(_ value: JSONValue, _ key: String) throws -> String {
    guard let text = value.text, !text.isEmpty else { throw wrong(key, "a string") }
    return text
  }

  private static func wrong(_ key: String, _ form: String) -> CommandFailure {
    .data("\(name): \"\(key)\" must be \(form)")
  }
}
