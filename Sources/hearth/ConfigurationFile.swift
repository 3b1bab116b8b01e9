import Glibc
import WireFormat

/// `hearth.json` in the working directory: options of `hearth serve` under their own names.
///
///     {"port": 9090, "emulator": true, "data": "./data", "import": ["fixtures/a.json", "fixtures/b.json"]}
///
/// Verbs that talk to a server take `project` and `database` from it too, so that they mean the same one.
enum ConfigurationFile {
  static let name = "hearth.json"
  private static let bytesMax = 1 << 20

  /// What the file says for a verb; empty where there is no file.
  /// - Throws: ``CommandFailure`` when the file is no object of known options.
  static func defaults(for command: Command) throws -> [String: [String]] {
    guard let bytes = try readFile() else { return [:] }
    let all = try parse(bytes)
    if [Command.serve.name, Command.doctor.name].contains(command.name) { return all }
    let names = command.options.map(\.name)
    return all.filter { ["project", "database"].contains($0.key) && names.contains($0.key) }
  }

  private static func readFile() throws -> [UInt8]? {
    let file = open(name, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      throw CommandFailure.data("\(name): cannot be opened: \(String(cString: strerror(errno)))")
    }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: bytesMax)
    let count = Glibc.read(file, &bytes, bytes.count)
    guard count >= 0 else { throw CommandFailure.data("\(name): cannot be read: \(String(cString: strerror(errno)))") }
    guard count < bytesMax else { throw CommandFailure.data("\(name): is longer than \(bytesMax) bytes") }
    return Array(bytes[..<count])
  }

  /// The options that a text gives.
  /// - Throws: ``CommandFailure`` when it is no object of known options.
  static func parse(_ bytes: [UInt8]) throws -> [String: [String]] {
    let options = Command.serve.options + [.value("database", "ID", "")]
    do {
      return try JSONText.read(bytes) { root in try read(root, options) }
    } catch let error as WireError { throw CommandFailure.data("\(name): \(error.description)") }
  }

  private static func read(_ root: JSONValue, _ options: [Command.Option]) throws(CommandFailure) -> [String: [String]]
  {
    guard case .object(var members) = root.kind else { throw .data("\(name): must be an object of options") }
    var values: [String: [String]] = [:]
    while let (key, value) = members.next() {
      guard let option = options.first(where: { $0.name == key.text }) else {
        let hint = NearestMatch.find(key.text, in: options.map(\.name)).map { "; did you mean \"\($0)\"?" } ?? ""
        throw .data("\(name): unknown option \"\(key.text)\"\(hint)")
      }
      if let texts = try texts(value, option) { values[option.name] = texts }
    }
    return values
  }

  private static func texts(_ value: JSONValue, _ option: Command.Option) throws(CommandFailure) -> [String]? {
    switch value.kind {
    case .null: return nil
    case .boolean(let flag) where option.value == nil: return flag ? [""] : nil
    case .string(let text) where option.value != nil: return [String(decoding: text, as: UTF8.self)]
    case .integer(let number) where option.value != nil: return [String(number)]
    case .array(var elements) where option.isRepeated:
      var texts: [String] = []
      while let element = elements.next() {
        guard case .string(let text) = element.kind else { throw form(option) }
        texts.append(String(decoding: text, as: UTF8.self))
      }
      return texts
    default: throw form(option)
    }
  }

  private static func form(_ option: Command.Option) -> CommandFailure {
    let form = option.isRepeated ? "a string or an array of strings" : "a string"
    return .data("\(name): \"\(option.name)\" must be \(option.value == nil ? "true or false" : form)")
  }
}
