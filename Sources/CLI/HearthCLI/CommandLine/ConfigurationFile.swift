import Accounts
import DocumentModel
import Glibc
import WireFormat

/// The configuration file: `hearth.json` in the working directory, or the file that `--config` names. Its keys are the
/// names of the options of `hearth serve`.
///
///     {"port": 9090, "emulator": true, "data": "./data", "import": ["fixtures/a.json", "fixtures/b.json"]}
///
/// A repeated option whose values have the form `KEY=VALUE` can also be an object:
///
///     {"hosting": {"shop.example.com": "shop/dist", "admin.example.com": "firebase.json#admin"}}
///
/// `hearth serve` reads options that are not in this file from `firebase.json`; see ``FirebaseFile``. Verbs that call a
/// server also read `project` and `database` from `hearth.json`, so that they use the same database.
enum ConfigurationFile {
  static let name = "hearth.json"
  private static let bytesMax = 1 << 20
  /// Options that exclude each other.
  private static let exclusive = [("data", "in-memory"), ("quiet", "log-level")]

  /// Returns the settings that files contain for a verb, without those that the command line excludes.
  /// - Throws: ``CommandFailure`` if a file is invalid; the message names the file and the key.
  static func settings(for command: Command, _ arguments: Arguments) throws -> [String: Arguments.Setting] {
    let isServe = [Command.serve.name, Command.doctor.name].contains(command.name)
    let chosen = isServe ? arguments.value("config") : nil
    guard isServe else {
      let names = command.options.map(\.name)
      return try read(name).filter { ["project", "database"].contains($0.key) && names.contains($0.key) }
    }
    var settings = try read(chosen ?? name, mustExist: chosen != nil)
    // The command line overrides the file, also with an option that excludes one of the file.
    for (a, b) in exclusive {
      if arguments.has(a) { settings[b] = nil }
      if arguments.has(b) { settings[a] = nil }
    }
    // A file that `--config` names is complete. The working directory may then belong to another project.
    guard chosen == nil else { return settings }
    let isEmulator = arguments.has("emulator") || settings["emulator"] != nil
    var others = try FirebaseFile.settings(isEmulator: isEmulator)
    // Servers that choose free ports may run at the same time in this directory, so they open no ports of the file.
    let port = arguments.value("port") ?? settings["port"]?.values.last ?? others["port"]?.values.last
    if port == "0" || arguments.has("one-port") || settings["one-port"] != nil {
      for service in FirebaseFile.ports { others["\(service)-port"] = nil }
    }
    return settings.merging(others) { own, _ in own }
  }

  /// Returns the public URL in the configuration file of the working directory, or `nil` if it contains none.
  /// - Throws: ``CommandFailure`` if the file is invalid.
  static func publicURL() throws -> String? { try read(name)["public-url"]?.values.last }

  private static func read(_ path: String, mustExist: Bool = false) throws -> [String: Arguments.Setting] {
    // An empty file, such as /dev/null, sets no options.
    guard let bytes = try bytes(of: path, mustExist: mustExist), bytes.contains(where: { $0 > 0x20 }) else {
      return [:]
    }
    return try parse(bytes, name: path).mapValues { Arguments.Setting(values: $0, origin: path) }
  }

  /// Returns the bytes of a configuration file, or `nil` if it does not exist.
  /// - Throws: ``CommandFailure`` if the file cannot be read, has 1 MiB or more, or does not exist and `mustExist` is
  ///   set.
  static func bytes(of path: String, mustExist: Bool = false) throws -> [UInt8]? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else {
      let code = errno
      // `sudo -u` keeps the working directory, which may be a folder that only another user can search.
      let isHidden = code == EACCES && !path.hasPrefix("/") && access(".", X_OK) != 0
      if code == ENOENT || isHidden, !mustExist { return nil }
      errno = code
      throw CommandFailure.data("\(path): cannot be opened: \(String(cString: strerror(errno)))")
    }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: bytesMax)
    let count = Glibc.read(file, &bytes, bytes.count)
    guard count >= 0 else { throw CommandFailure.data("\(path): cannot be read: \(String(cString: strerror(errno)))") }
    guard count < bytesMax else { throw CommandFailure.data("\(path): must be shorter than \(bytesMax) bytes") }
    return Array(bytes[..<count])
  }

  /// Returns the values of options that a text contains.
  /// - Throws: ``CommandFailure`` if the text is not a JSON object of known options.
  static func parse(
    _ bytes: [UInt8], name: String = name, options: [Command.Option]? = nil
  ) throws -> [String: [String]] {
    do {
      return try JSONText.read(bytes) { root in try read(root, name, options ?? serverOptions) }
    } catch let error as WireError { throw CommandFailure.data("\(name): \(error.description)") }
  }

  /// The options of the file of a server.
  private static var serverOptions: [Command.Option] { Command.serve.options + [.value("database", "ID", "")] }

  private static func read(
    _ root: JSONValue, _ name: String, _ options: [Command.Option]
  ) throws(CommandFailure) -> [String: [String]] {
    guard case .object(var members) = root.kind else { throw .data("\(name): must be a JSON object of options") }
    let known = options.filter(\.isAllowedInFile)
    var values: [String: [String]] = [:]
    while let (key, value) = members.next() {
      guard let option = known.first(where: { $0.name == key.text }) else {
        if options.contains(where: { $0.name == key.text }) {
          throw .data("\(name): \"\(key.text)\" can only be set on the command line")
        }
        let hint = NearestMatch.find(key.text, in: known.map(\.name)).map { "; did you mean \"\($0)\"?" } ?? ""
        throw .data("\(name): unknown option \"\(key.text)\"\(hint)")
      }
      guard values[option.name] == nil else { throw .data("\(name): \"\(option.name)\" is set twice") }
      if let texts = try texts(value, option, name) { values[option.name] = texts }
    }
    return values
  }

  private static func texts(
    _ value: JSONValue, _ option: Command.Option, _ name: String
  ) throws(CommandFailure) -> [String]? {
    switch value.kind {
    case .null: return nil
    case .boolean(let flag) where option.value == nil: return flag ? [""] : nil
    // Only the providers of sign-in are an object. They stay JSON until the server reads them.
    case .object(let members) where option.name == "providers":
      return [String(decoding: MapValue(claims: members).json, as: UTF8.self)]
    case .string(let text) where option.value != nil: return [String(decoding: text, as: UTF8.self)]
    case .integer(let number) where option.value != nil: return [String(number)]
    case .array(var elements) where option.isRepeated:
      var texts: [String] = []
      while let element = elements.next() {
        guard case .string(let text) = element.kind else { throw form(option, name) }
        texts.append(String(decoding: text, as: UTF8.self))
      }
      return texts.isEmpty ? nil : texts
    case .object(var members) where option.isRepeated:
      var texts: [String] = []
      while let (key, member) = members.next() {
        guard case .string(let text) = member.kind else { throw form(option, name) }
        texts.append("\(key.text)=\(String(decoding: text, as: UTF8.self))")
      }
      return texts.isEmpty ? nil : texts
    default: throw form(option, name)
    }
  }

  private static func form(_ option: Command.Option, _ name: String) -> CommandFailure {
    let form = option.isRepeated ? "a string or an array of strings" : "a string or a whole number"
    return .data("\(name): \"\(option.name)\" must be \(option.value == nil ? "true or false" : form)")
  }

  /// Returns the configuration that a server would run with, as a configuration file: every option, `null` if it has no
  /// value. `computed` contains the values that the server derives from options and defaults.
  static func effective(_ arguments: Arguments, computed: [String: [String]]) -> [UInt8] {
    var json = JSONWriter(.pretty)
    json.beginObject()
    for option in Command.serve.options where option.isAllowedInFile {
      Array(option.name.utf8).withUnsafeBytes { json.key($0) }
      let values = computed[option.name] ?? arguments.values(option.name)
      if option.value == nil {
        json.bool(!values.isEmpty)
      } else if option.isRepeated {
        json.beginArray()
        for value in values { json.string(value) }
        json.endArray()
      } else if let value = values.last {
        if let number = Int(value), String(number) == value { json.number(number) } else { json.string(value) }
      } else {
        json.null()
      }
    }
    json.endObject()
    return json.bytes
  }
}
