import DocumentModel
import KeyEncoding
import TextAnalysis
import WireFormat

extension StoredIndex {
  /// Appends the codes of a document's entries to `bytes`. Returns their ranges, sorted, each distinct code once.
  ///
  /// The result is empty if the document lacks one of the fields. Cost: one pass over the map per field, and linear
  /// in the encoded bytes.
  /// - Throws: ``WireError`` if the stored bytes are not valid fields, or one code or all codes exceed their size
  ///   limit.
  func codes(of map: EncodedMap, into bytes: inout [UInt8]) throws(WireError) -> [Range<Int>] {
    if let language = definition.textLanguage { return try termCodes(of: map, language, into: &bytes) }
    var prefix: [UInt8] = []
    var suffix: [UInt8] = []
    var elements: EncodedArray?
    for field in definition.fields {
      guard let value = try map.value(at: field.path) else { return [] }
      switch field.mode {
      case .contains:
        guard case .array(let array) = try value.content else { return [] }
        elements = array
      case .vector(let dimension):
        guard case .map(let inner) = try value.content, let components = try inner.vectorComponents,
          try components.count == dimension
        else { return [] }
      case .text: return []
      case .ascending, .descending:
        let isInverted = field.mode == .descending
        if elements == nil {
          try Self.append(value, isInverted: isInverted, to: &prefix)
        } else {
          try Self.append(value, isInverted: isInverted, to: &suffix)
        }
      }
    }
    guard let elements else {
      let start = bytes.count
      bytes += prefix
      return [try Self.checked(start..<bytes.count)]
    }
    let first = bytes.count
    var ranges: [Range<Int>] = []
    var iterator = elements.makeIterator()
    while let element = try iterator.next() {
      let start = bytes.count
      bytes += prefix
      try Self.append(element, isInverted: false, to: &bytes)
      bytes += suffix
      ranges.append(try Self.checked(start..<bytes.count))
      guard bytes.count - first <= Limits.indexEntriesBytesMax else { throw .model(.tooManyIndexEntries) }
    }
    return Self.distinct(ranges, bytes)
  }

  /// The most entries a document can have: one, or one per element of an array, or one per term. 0 if it lacks a field.
  func countMax(of map: EncodedMap) throws(WireError) -> Int {
    if let language = definition.textLanguage {
      var bytes: [UInt8] = []
      return try termCodes(of: map, language, into: &bytes).count
    }
    var count = 1
    for field in definition.fields {
      guard let value = try map.value(at: field.path) else { return 0 }
      guard field.mode == .contains else { continue }
      guard case .array(let array) = try value.content else { return 0 }
      count = try array.count
    }
    return count
  }

  /// Whether two states of a document have the same entries because all fields are equal.
  func isSame(_ a: EncodedMap, _ b: EncodedMap) throws(WireError) -> Bool {
    for field in definition.fields {
      switch (try a.value(at: field.path), try b.value(at: field.path)) {
      case (nil, nil): continue
      case (let a?, let b?):
        guard a.bytes.count == b.bytes.count, a.bytes.elementsEqual(b.bytes) else { return false }
      default: return false
      }
    }
    return true
  }

  /// Appends the codes of the terms in the fields of a text index. Returns their ranges, as ``codes(of:into:)`` does.
  private func termCodes(
    of map: EncodedMap, _ language: TextLanguage, into bytes: inout [UInt8]
  ) throws(WireError) -> [Range<Int>] {
    let fields = TextFields(definition.fields.map(\.path))
    let first = bytes.count
    var ranges: [Range<Int>] = []
    let analyzer: TextAnalyzer
    do throws(TextAnalysisError) { analyzer = try TextAnalyzers.take(language) } catch {
      throw .model(.textAnalysisUnavailable(error.description))
    }
    defer { TextAnalyzers.give(analyzer) }
    try fields.forEachString(in: map) { text in
      analyzer.forEachTerm(in: text) { term in
        let start = bytes.count
        Self.append(term: term, to: &bytes)
        ranges.append(start..<bytes.count)
      }
    }
    guard bytes.count - first <= Limits.indexEntriesBytesMax else { throw .model(.tooManyIndexEntries) }
    return Self.distinct(ranges, bytes)
  }

  /// Appends the code of a term of a text index.
  package static func append(term: UnsafeRawBufferPointer, to bytes: inout [UInt8]) {
    OrderedCode.append(segment: term, to: &bytes)
  }

  private static func append(
    _ value: EncodedValue, isInverted: Bool, to bytes: inout [UInt8]
  ) throws(WireError) {
    let start = bytes.count
    try OrderedCode.append(value, to: &bytes, budget: Limits.indexedValueBytesMax)
    if isInverted { OrderedCode.invert(&bytes, from: start) }
  }

  private static func checked(_ code: Range<Int>) throws(WireError) -> Range<Int> {
    guard code.count <= Limits.indexEntryCodeBytesMax else { throw .model(.indexEntryTooLarge) }
    return code
  }

  private static func distinct(_ ranges: [Range<Int>], _ bytes: [UInt8]) -> [Range<Int>] {
    var distinct: [Range<Int>] = []
    for range in ranges.sorted(by: { Ordering.bytes(bytes[$0], bytes[$1]) == .less }) {
      if let last = distinct.last, bytes[last] == bytes[range] { continue }
      distinct.append(range)
    }
    return distinct
  }
}
