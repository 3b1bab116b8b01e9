import DatabaseService
import DocumentModel
import FixtureTree

/// The options of `import` that say how to read files, and the remarks on what was read.
enum ReadChoice {
  static let options: [Command.Option] = [
    .value("collection", "PATH", "the collection for objects and rows without paths, such as users"),
    .value("id", "NAME", "the member or column with the document IDs (default: __id__, _id or id)"),
    .flag("drop-id", "do not store the member with the ID as a field"),
    .flag("generate-ids", "give each object or row a random ID"),
    .choice("types", ["infer", "strings"], "the types of CSV columns without a type in the header (default: strings)"),
    .value(
      "delimiter", "CHARACTER",
      "the character between the cells of CSV (default: a comma, a tab in .tsv files, or see above)"),
    .choice(
      "sdk-values", ["on", "off"], "read {\"_seconds\": …} and the like as timestamps and other values; see above"),
    .flag("rewrite-refs", "change references to other projects or databases to the target database"),
  ]

  /// Returns the choice that the options make.
  /// - Throws: ``CommandFailure`` if an option is invalid.
  static func read(_ arguments: Arguments) throws -> ReadOptions {
    try arguments.exclude("id", "generate-ids")
    try arguments.exclude("drop-id", "generate-ids")
    var options = ReadOptions()
    options.collection = try arguments.value("collection").map { text in
      let path = try DatabaseChoice.path(text)
      guard path.isCollection else {
        throw arguments.refusal(of: "collection", text, "must be the path of a collection, such as users")
      }
      return path
    }
    options.idMember = arguments.value("id")
    options.dropsIDMember = arguments.has("drop-id")
    options.generatesIDs = arguments.has("generate-ids")
    options.rewritesReferences = arguments.has("rewrite-refs")
    options.infersTypes = try choice("types", ["strings": false, "infer": true], arguments) ?? false
    options.csvOption = ["types", "delimiter"].first(where: arguments.has).map { "--\($0)" }
    options.readsSDKValues = try choice("sdk-values", ["on": true, "off": false], arguments)
    if let text = arguments.value("delimiter") {
      let bytes = Array((text == "\\t" ? "\t" : text).utf8)
      guard bytes.count == 1, bytes[0] < 0x80, ![0x0A, 0x0D, 0x22].contains(bytes[0]) else {
        throw arguments.refusal(of: "delimiter", text, "must be one ASCII character, such as ';' or '\\t'")
      }
      options.delimiter = bytes[0]
    }
    return options
  }

  private static func choice(_ name: String, _ values: [String: Bool], _ arguments: Arguments) throws -> Bool? {
    guard let text = arguments.value(name) else { return nil }
    guard let value = values[text] else {
      throw arguments.refusal(of: name, text, "must be \(values.keys.sorted().joined(separator: " or "))")
    }
    return value
  }

  /// Returns what the user should know about the files that were read, one line each.
  static func remarks(_ tally: ReadTally, _ options: ReadOptions, _ database: DatabaseID) -> [String] {
    var lines: [String] = []
    if let delimiter = tally.foundDelimiter {
      let name = delimiter == UInt8(ascii: "\t") ? "tab" : "'\(Character(Unicode.Scalar(delimiter)))'"
      lines.append(
        tally.headerHasComma
          ? "the header and the first row show that each \(name) separates cells; --delimiter names another character"
          : "the header has no comma, so each \(name) separates cells; --delimiter names another character")
    }
    if tally.generatedIDs > 0, !options.generatesIDs {
      lines.append(
        "\(CountText.grouped(tally.generatedIDs, "document")) got a random ID, because the first object or row has no "
          + "\"id\"; another import of the same file adds them again, unless you name a member with --id")
    }
    if tally.sdkValuesRead > 0 {
      lines.append(
        "read \(CountText.grouped(tally.sdkValuesRead, "map")) such as {\"_seconds\": …, \"_nanoseconds\": …} as values of "
          + "Firebase's SDKs; --sdk-values off keeps maps")
    }
    if tally.sdkValuesLeft > 0, options.readsSDKValues == nil {
      lines.append(
        "warning: \(CountText.grouped(tally.sdkValuesLeft, "map has", "maps have")) the form of a value of Firebase's "
          + "SDKs, such as "
          + "{\"_seconds\": …, \"_nanoseconds\": …}, but stayed a map; --sdk-values on reads these values")
    }
    if tally.foreignReferences > 0 {
      let references = CountText.grouped(tally.foreignReferences, "reference")
      if options.rewritesReferences {
        lines.append("changed \(references) to other databases to \(database.name)")
      } else {
        lines.append(
          "warning: \(references) to another project or database, such as \(tally.firstForeignReference); "
            + "--rewrite-refs changes them to \(database.name)")
      }
    }
    return lines
  }
}
