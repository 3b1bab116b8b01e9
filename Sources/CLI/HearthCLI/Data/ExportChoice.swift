import Compression
import FixtureTree

/// The options of `export` that choose the form of the output.
enum ExportChoice {
  static let options: [Command.Option] = [
    .value("format", "FORMAT", "tree, ndjson, csv or firebase (default: the ending of FILE, or tree)")
      .with(choices: ["tree", "ndjson", "csv", "firebase"]),
    .value("compress", "METHOD", "gzip or zstd (default: the ending of FILE, .gz or .zst, or none)")
      .with(choices: ["gzip", "zstd"]),
  ]

  /// Returns the format that the options or the name of the output choose.
  /// - Throws: ``CommandFailure`` if no format has the name.
  static func format(_ arguments: Arguments) throws -> DocumentFileWriter.Format {
    guard let name = arguments.value("format") else {
      return arguments.value("output").flatMap { DocumentFileWriter.Format(nameOfFile: $0) } ?? .tree
    }
    guard let format = DocumentFileWriter.Format(rawValue: name) else {
      throw arguments.refusal(of: "format", name, "must be tree, ndjson, csv or firebase")
    }
    return format
  }

  /// Returns the compression that the options or the name of the output choose; `nil` for none.
  /// - Throws: ``CommandFailure`` if no method has the name.
  static func compression(_ arguments: Arguments) throws -> CompressionFormat? {
    guard let name = arguments.value("compress") else {
      return arguments.value("output").flatMap { CompressionFormat(nameOfFile: $0) }
    }
    guard let format = CompressionFormat(rawValue: name) else {
      throw arguments.refusal(of: "compress", name, "must be gzip or zstd")
    }
    return format
  }
}
