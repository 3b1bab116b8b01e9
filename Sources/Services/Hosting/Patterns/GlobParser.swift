/// Parses the text of a ``Glob``.
struct GlobParser {
  private let bytes: [UInt8]
  private var index = 0
  private let hasCaptures: Bool
  /// Whether the pattern starts with `!`, without a group.
  let isNegated: Bool
  private(set) var negationCount = 0
  private(set) var foundCapture = false

  init(_ text: String, hasCaptures: Bool) {
    var bytes = Array(text.utf8)
    isNegated = bytes.first == UInt8(ascii: "!") && (bytes.count < 2 || bytes[1] != UInt8(ascii: "("))
    if isNegated { bytes.removeFirst() }
    if bytes.first != UInt8(ascii: "/") { bytes.insert(UInt8(ascii: "/"), at: 0) }
    self.bytes = bytes
    self.hasCaptures = hasCaptures
  }

  /// Parses the whole pattern.
  /// - Throws: ``Glob/Failure`` if a group is not closed or groups are nested too deeply.
  mutating func parse() throws(Glob.Failure) -> [Glob.Node] {
    try sequence(until: [], depth: 0, isStart: true).nodes
  }

  private func at(_ offset: Int) -> UInt8? { index + offset < bytes.count ? bytes[index + offset] : nil }

  /// Parses up to a byte of `ends`, which is not consumed.
  ///
  /// - Parameter isStart: whether the sequence begins at the start of a segment.
  private mutating func sequence(
    until ends: [UInt8], depth: Int, isStart: Bool
  ) throws(Glob.Failure) -> (nodes: [Glob.Node], endsSegment: Bool) {
    guard depth <= HostingLimits.globDepthMax else { throw Glob.Failure(text: "groups are nested too deeply") }
    var nodes: [Glob.Node] = []
    var text: [UInt8] = []
    var isStart = isStart
    func isSegmentEnd(_ byte: UInt8?) -> Bool { byte.map { $0 == UInt8(ascii: "/") || ends.contains($0) } ?? true }
    func flush() {
      if !text.isEmpty { nodes.append(.text(text)) }
      text = []
    }
    while let byte = at(0), !ends.contains(byte) {
      let wasStart = isStart
      isStart = false
      if let kind = extensionKind(byte), at(1) == UInt8(ascii: "(") {
        flush()
        index += 2
        nodes.append(try group(kind, [UInt8(ascii: "|")], end: UInt8(ascii: ")"), depth, wasStart))
        continue
      }
      switch byte {
      case UInt8(ascii: "*"):
        flush()
        var count = 0
        while at(0) == UInt8(ascii: "*") {
          count += 1
          index += 1
        }
        guard wasStart, isSegmentEnd(at(0)) else {
          nodes.append(.star(isWhole: false))
          continue
        }
        if count == 1 {
          nodes.append(.star(isWhole: true))
        } else if at(0) == UInt8(ascii: "/") {
          index += 1
          nodes.append(.segments(isLast: false))
          isStart = true
        } else {
          nodes.append(.segments(isLast: true))
        }
      case UInt8(ascii: "?"):
        flush()
        index += 1
        nodes.append(.character)
      case UInt8(ascii: "["):
        guard let set = characterSet() else { fallthrough }
        flush()
        nodes.append(.set(set))
      case UInt8(ascii: "{"):
        guard byte == UInt8(ascii: "{"), hasAlternatives else {
          text.append(byte)
          index += 1
          continue
        }
        flush()
        index += 1
        nodes.append(try group(.one, [UInt8(ascii: ",")], end: UInt8(ascii: "}"), depth, wasStart))
      case UInt8(ascii: ":"):
        guard hasCaptures, depth == 0, wasStart, let (name, modifier) = capture() else {
          text.append(byte)
          index += 1
          continue
        }
        if modifier != .one, text.last == UInt8(ascii: "/") { text.removeLast() }
        flush()
        nodes.append(.capture(name, modifier))
        foundCapture = true
      case UInt8(ascii: "\\"):
        index += 1
        if let escaped = at(0) {
          text.append(escaped)
          index += 1
        }
      default:
        // Several slashes are one.
        if byte != UInt8(ascii: "/") || text.last != byte { text.append(byte) }
        index += 1
        isStart = byte == UInt8(ascii: "/")
      }
    }
    flush()
    return (nodes, isSegmentEnd(at(0)))
  }

  private func extensionKind(_ byte: UInt8) -> Glob.Kind? {
    switch byte {
    case UInt8(ascii: "@"): .one
    case UInt8(ascii: "?"): .optional
    case UInt8(ascii: "*"): .any
    case UInt8(ascii: "+"): .some
    case UInt8(ascii: "!"): Glob.Kind.none(0, isWhole: false)
    default: nil
    }
  }

  /// Parses the alternatives of a group and its end.
  private mutating func group(
    _ kind: Glob.Kind, _ separators: [UInt8], end: UInt8, _ depth: Int, _ isStart: Bool
  ) throws(Glob.Failure) -> Glob.Node {
    var kind = kind
    if case .none = kind {
      kind = .none(negationCount, isWhole: false)
      negationCount += 1
    }
    var alternatives: [[Glob.Node]] = []
    while true {
      alternatives.append(try sequence(until: separators + [end], depth: depth + 1, isStart: isStart).nodes)
      guard let byte = at(0) else { throw Glob.Failure(text: "a group is not closed") }
      index += 1
      if byte == end { break }
    }
    if case .none(let number, _) = kind {
      kind = .none(number, isWhole: isStart && (at(0) == nil || at(0) == UInt8(ascii: "/")))
    }
    return .group(kind, alternatives)
  }

  /// Whether a brace at the current position is closed and contains a comma of its own.
  private var hasAlternatives: Bool {
    var depth = 0
    var hasComma = false
    for byte in bytes[index...] {
      switch byte {
      case UInt8(ascii: "{"): depth += 1
      case UInt8(ascii: ","): hasComma = hasComma || depth == 1
      case UInt8(ascii: "}"):
        depth -= 1
        if depth == 0 { return hasComma }
      default: break
      }
    }
    return false
  }

  /// Parses `[…]` and returns its expression, or `nil` without consuming anything if it is not closed.
  private mutating func characterSet() -> String? {
    guard let end = bytes[(index + 1)...].dropFirst().firstIndex(of: UInt8(ascii: "]")) else { return nil }
    var content = Array(bytes[(index + 1)..<end])
    let isNegated = content.first == UInt8(ascii: "!") || content.first == UInt8(ascii: "^")
    if isNegated { content.removeFirst() }
    guard !content.isEmpty else { return nil }
    index = end + 1
    var out: [UInt8] = Array((isNegated ? "[^/" : "[").utf8)
    for byte in content where byte != UInt8(ascii: "/") {
      if "\\[]^&~".utf8.contains(byte) { out.append(UInt8(ascii: "\\")) }
      out.append(byte)
    }
    return String(decoding: out + [UInt8(ascii: "]")], as: UTF8.self)
  }

  /// Parses `:name` and its modifier, or returns `nil` without consuming anything.
  private mutating func capture() -> (name: String, modifier: Glob.Modifier)? {
    let name = bytes[(index + 1)...].prefix { ($0 | 0x20) &- 0x61 < 26 || $0 &- 0x30 < 10 || $0 == UInt8(ascii: "_") }
    guard let first = name.first, first &- 0x30 >= 10 else { return nil }
    index = name.endIndex
    let modifier: Glob.Modifier
    switch at(0) {
    case UInt8(ascii: "?"): modifier = .optional
    case UInt8(ascii: "*"): modifier = .any
    case UInt8(ascii: "+"): modifier = .some
    default: return (String(decoding: name, as: UTF8.self), .one)
    }
    index += 1
    return (String(decoding: name, as: UTF8.self), modifier)
  }
}
