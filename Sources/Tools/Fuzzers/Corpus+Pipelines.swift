/// The initial inputs of the fuzzers of pipelines.
extension Corpus {
  /// Bytes that choose expressions: every function once, with fields and constants as arguments.
  static let pipelineExpressions: [[UInt8]] = (0..<192).map { function in
    var bytes: [UInt8] = [UInt8(64 + function), 0, UInt8(function % 4)]
    for index in 0..<24 { bytes.append(UInt8(truncatingIfNeeded: index * 37 + function * 11)) }
    return bytes
  }

  /// The language, the query and the document of a search.
  static let searches: [[UInt8]] = [
    "\u{0}", "0tacos\0Two Tacos, one taco", "0taco -\"bean taco\"\0taco with beans", "1häuser\0Das Haus <b>steht</b>",
    "3東京\0東京に行く", "4ไทย\0ภาษาไทย", "5well-known\0a well-known word", "2\u{FDFA}\0\u{FDFA}",
  ].map { Array($0.utf8) }

  /// Files of the time zone database in version 2: without a rule for the future, and with some.
  static let timeZones: [[UInt8]] = ["", "CET-1CEST,M3.5.0,M10.5.0/3", "<+03>-3", "X10Y,J60/-1,365/25"].map(timeZone)

  private static func timeZone(_ rule: String) -> [UInt8] {
    let types: [UInt8] = [0, 0, 14, 16, 0, 0, 0, 0, 28, 32, 1, 4]
    let letters = Array("CET\0CES\0".utf8)
    var file = timeZoneHeader(times: 0, types: 1, letters: 4)
    file += types.prefix(6)
    file += letters.prefix(4)
    file += timeZoneHeader(times: 2, types: 2, letters: 8)
    file += [0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0]
    file += [1, 0]
    file += types
    file += letters
    file += Array("\n\(rule)\n".utf8)
    return file
  }

  private static func timeZoneHeader(times: UInt8, types: UInt8, letters: UInt8) -> [UInt8] {
    var header = Array("TZif2".utf8) + [UInt8](repeating: 0, count: 15)
    for count in [0, 0, 0, times, types, letters] { header += [0, 0, 0, count] }
    return header
  }
}
