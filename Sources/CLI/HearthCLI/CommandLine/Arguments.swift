/// The operands and options of a command line, checked against those that the verb accepts.
struct Arguments: Sendable {
  /// The words that are not options, in order.
  private(set) var operands: [String] = []
  private var values: [String: [String]] = [:]
  /// The names of the options that the verb accepts.
  private let accepted: Set<String>
  /// The file that each option was read from, by the option's name; options from the command line have no entry.
  private(set) var origins: [String: String] = [:]

  /// The values that a file sets for one option.
  struct Setting: Equatable {
    var values: [String]
    /// The name of the file, for messages.
    var origin: String
  }

  /// Parses the words that follow a verb.
  ///
  /// `--name value` and `--name=value` mean the same. Some options also have a letter. Words after `--` are operands,
  /// and so is a single `-`.
  /// - Throws: ``CommandFailure`` if the verb does not accept a word; an unknown option's message suggests the nearest.
  init(_ words: [String], for command: Command) throws {
    accepted = Set(command.options.map(\.name))
    var rest = words[...]
    while let word = rest.popFirst() {
      if word == "--" {
        operands += rest
        break
      }
      guard word.hasPrefix("-"), word != "-" else {
        operands.append(word)
        continue
      }
      let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      let option = try Self.option(parts[0], of: command)
      try add(option, inlineValue: parts.count == 2 ? parts[1] : nil, &rest)
    }
    try checkOperands(of: command)
  }

  /// Adds the settings of files for the options that are not set yet.
  mutating func adopt(_ settings: [String: Setting]) {
    for (name, setting) in settings where values[name] == nil {
      values[name] = setting.values
      origins[name] = setting.origin
    }
  }

  /// Replaces the values of an option that came from a file with those of `settings`, if the command line does not set
  /// the option.
  mutating func readopt(_ name: String, from settings: [String: Setting]) {
    guard values[name] == nil || origins[name] != nil else { return }
    values[name] = settings[name]?.values
    origins[name] = settings[name]?.origin
  }

  /// Returns the error for an option's value, which names the file if the option came from one. `complaint` follows the
  /// value, such as `must be blue`.
  func refusal(of name: String, _ value: String, _ complaint: String) -> CommandFailure {
    if let origin = origins[name] { return .data("\(origin): \"\(name)\": '\(value)' \(complaint)") }
    return .usage("'--\(name) \(value)' \(complaint)")
  }

  private static func option(_ word: String, of command: Command) throws -> Command.Option {
    let name = word.hasPrefix("--") ? String(word.dropFirst(2)) : ""
    if let option = command.options.first(where: { $0.name == name }) { return option }
    if let option = command.options.first(where: { $0.letter.map { word == "-\($0)" } ?? false }) { return option }
    let names = command.options.map(\.name) + ["help"]
    let bare = String(word.drop { $0 == "-" })
    let near = NearestMatch.find(bare, in: names) ?? NearestMatch.abbreviated(bare, in: names)
    let hint = near.map { "; did you mean '--\($0)'?" } ?? ""
    throw CommandFailure.usage("unknown option '\(word)'\(hint)")
  }

  private mutating func add(
    _ option: Command.Option, inlineValue: String?, _ rest: inout ArraySlice<String>
  ) throws {
    if values[option.name] != nil, !option.isRepeated {
      throw CommandFailure.usage("option '--\(option.name)' is given twice; it accepts one value")
    }
    guard let placeholder = option.value else {
      guard inlineValue == nil else { throw CommandFailure.usage("option '--\(option.name)' takes no value") }
      values[option.name] = [""]
      return
    }
    let value: String
    if let inlineValue {
      value = inlineValue
    } else if let next = rest.first, !next.hasPrefix("--") {
      value = next
      rest = rest.dropFirst()
    } else {
      throw CommandFailure.usage("option '--\(option.name)' needs a value: --\(option.name) \(placeholder)")
    }
    values[option.name, default: []].append(value)
  }

  private func checkOperands(of command: Command) throws {
    if operands.count < command.operandCount.lowerBound {
      let isOne = command.operandCount.lowerBound - operands.count == 1
      throw CommandFailure.usage(
        "\(isOne ? "an operand is" : "the operands are") missing: \(command.operands)")
    }
    if operands.count > command.operandCount.upperBound {
      let extra = operands[command.operandCount.upperBound]
      throw CommandFailure.usage(
        "unexpected '\(extra)'; the verb takes \(command.operands.isEmpty ? "no operands" : command.operands)")
    }
  }

  /// Whether the verb accepts an option.
  func accepts(_ name: String) -> Bool { accepted.contains(name) }

  /// Whether an option is set.
  func has(_ name: String) -> Bool { values[name] != nil }

  /// The value of an option, or `nil` if it is not set.
  func value(_ name: String) -> String? { values[name]?.last }

  /// All values of a repeatable option.
  func values(_ name: String) -> [String] { values[name] ?? [] }

  /// The value of an option as a whole number, or `nil` if the option is not set.
  /// - Throws: ``CommandFailure`` if the value is not a whole number or is out of range.
  func integer(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
    guard let text = value(name) else { return nil }
    guard let number = Int(text), range.contains(number) else {
      throw refusal(of: name, text, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  /// The value of an option as a number of bytes, or `nil` if the option is not set. The units K, M, G and T are powers
  /// of 1024.
  /// - Throws: ``CommandFailure`` if the value is not a size or is out of range.
  func bytes(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
    guard let text = value(name) else { return nil }
    let units: [Character: Int] = ["K": 10, "M": 20, "G": 30, "T": 40]
    let shift = text.uppercased().last.flatMap { units[$0] }
    let digits = shift == nil ? text[...] : text.dropLast()
    guard let number = Int(digits), number >= 0, number <= Int.max >> (shift ?? 0),
      range.contains(number << (shift ?? 0))
    else {
      throw refusal(
        of: name, text, "must be a size from \(range.lowerBound) to \(range.upperBound) bytes, such as 64G")
    }
    return number << (shift ?? 0)
  }

  /// Rejects two options that exclude each other.
  /// - Throws: ``CommandFailure`` if both are set.
  func exclude(_ a: String, _ b: String) throws {
    if has(a), has(b) { throw refusal(of: [a, b], "exclude each other; give only one of them") }
  }

  /// Rejects one of two options if the other is missing.
  /// - Throws: ``CommandFailure`` if exactly one is set.
  func requireBoth(_ a: String, _ b: String) throws {
    if has(a) != has(b) { throw refusal(of: [a, b], "belong together; give both or neither") }
  }

  /// Returns the error for several options, which names the file if all of them came from one.
  func refusal(of names: [String], _ complaint: String) -> CommandFailure {
    let places = names.filter(has).map { origins[$0] }
    guard let origin = places.first ?? nil, places.allSatisfy({ $0 == origin }) else {
      let texts = names.map { name in origins[name].map { "\"\(name)\" of \($0)" } ?? "'--\(name)'" }
      return .usage("\(texts.joined(separator: " and ")) \(complaint)")
    }
    return .data("\(origin): \(names.map { "\"\($0)\"" }.joined(separator: " and ")) \(complaint)")
  }
}
