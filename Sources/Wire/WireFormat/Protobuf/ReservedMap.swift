import DocumentModel

/// Checks of maps with reserved keys. Such a map is valid only if it represents a vector or a BSON value.
enum ReservedMap {
  /// Checks a map with at least one reserved key. Returns its stored form if that differs, else `nil`.
  /// - Throws: ``WireError/model(_:)`` if it is neither a valid vector nor, in an edition that has them, a valid
  ///   BSON value.
  static func normalized(_ map: EncodedMap, in edition: Edition) throws(WireError) -> MapValue? {
    if edition.hasBSONTypes, let (type, content) = try map.bson { return try normalized(content, type) }
    var hasInteger = false
    let components = try vectorComponents(of: map, hasInteger: &hasInteger)
    guard hasInteger, case .map(let vector) = Value.vector(components) else { return nil }
    return vector
  }

  // MARK: Vectors

  private static func vectorComponents(of map: EncodedMap, hasInteger: inout Bool) throws(WireError) -> [Double] {
    guard let type = try map.value(for: "__type__"), case .string(let name) = try type.content,
      EncodedMap.isEqual(name, "__vector__")
    else { throw .model(.reservedFieldName(try firstReservedKey(of: map))) }
    guard let array = try map.vectorComponents else {
      throw .model(.invalidVector("it must have exactly the fields __type__ and value, which is an array."))
    }
    var components: [Double] = []
    var iterator = array.makeIterator()
    while let element = try iterator.next() {
      guard components.count < Limits.vectorDimensionsMax else {
        throw .model(.invalidVector("it has more than \(Limits.vectorDimensionsMax) dimensions."))
      }
      switch try element.content {
      case .double(let number) where !number.isNaN:
        components.append(number)
      case .integer(let number):
        components.append(Double(number))
        hasInteger = true
      default:
        throw .model(.invalidVector("its components must be numbers other than NaN."))
      }
    }
    guard !components.isEmpty else { throw .model(.invalidVector("it has no dimensions.")) }
    return components
  }

  private static func firstReservedKey(of map: EncodedMap) throws(WireError) -> String {
    var entries = map.makeIterator()
    while let (key, _) = try entries.next() {
      if ResourceID.isReserved(key) { return String(decoding: key, as: UTF8.self) }
    }
    return "__type__"
  }

  // MARK: BSON values

  private static func normalized(_ content: EncodedValue, _ type: BSONType) throws(WireError) -> MapValue? {
    switch (type, try content.content) {
    case (.minKey, .null), (.maxKey, .null): return nil
    case (.objectID, .string(let digits)):
      guard digits.count == 24, digits.allSatisfy(isHexadecimal) else {
        throw .model(.invalidBSON(type, "it must have 24 hexadecimal digits."))
      }
      return nil
    case (.int32, .integer(let number)):
      guard Int32(exactly: number) != nil else { throw .model(.invalidBSON(type, "it does not fit 32 bits.")) }
      return nil
    case (.decimal128, .string(let text)): return try decimal(text)
    case (.binary, .bytes(let bytes)):
      guard let subtype = bytes.first else {
        throw .model(.invalidBSON(type, "its first byte, the subtype, is missing."))
      }
      // The client library writes bytes of subtype 0 as a plain bytes value (firestore-api.md, section 2.2).
      guard subtype != 0 else {
        throw .model(.invalidBSON(type, "its first byte, the subtype, must be 1 to 255; use bytesValue for subtype 0."))
      }
      return nil
    case (.timestamp, .map(let map)):
      guard try count(map) == 2, try isUnsigned32(map, BSONType.secondsKey),
        try isUnsigned32(map, BSONType.incrementKey)
      else {
        throw .model(.invalidBSON(type, "it must have seconds and increment, which are unsigned 32-bit integers."))
      }
      return nil
    case (.regex, .map(let map)):
      try checkRegex(map)
      return nil
    default: throw .model(.invalidBSON(type, "its content has the wrong type."))
    }
  }

  private static func checkRegex(_ map: EncodedMap) throws(WireError) {
    guard try count(map) == 2, case .string? = try map.value(for: BSONType.patternKey)?.content,
      case .string(let options)? = try map.value(for: BSONType.optionsKey)?.content
    else { throw .model(.invalidBSON(.regex, "it must have pattern and options, which are strings.")) }
    for option in options where !"imsux".utf8.contains(option) {
      throw .model(.invalidRegexOption(String(decoding: options, as: UTF8.self)))
    }
  }

  /// Checks the text of a decimal, which is stored unchanged except for NaN and infinity: these have one spelling.
  private static func decimal(_ text: UnsafeRawBufferPointer) throws(WireError) -> MapValue? {
    let written = String(decoding: text, as: UTF8.self)
    var name = written.lowercased()
    let isNegative = name.hasPrefix("-")
    if isNegative || name.hasPrefix("+") { name.removeFirst() }
    let spelling: String
    switch name {
    case "nan": spelling = "NaN"
    case "inf", "infinity": spelling = isNegative ? "-Infinity" : "Infinity"
    default:
      guard isDecimal(name.utf8) else { throw .model(.invalidBSON(.decimal128, "it is not a decimal number.")) }
      return nil
    }
    return written == spelling ? nil : MapValue([(BSONType.decimal128.rawValue, .string(spelling))])
  }

  /// Returns whether a text without sign consists of digits with at most one point, and optionally an exponent.
  private static func isDecimal(_ text: String.UTF8View) -> Bool {
    let parts = text.split(separator: UInt8(ascii: "e"), maxSplits: 1, omittingEmptySubsequences: false)
    var digits = 0
    var points = 0
    for byte in parts[0] {
      if isDigit(byte) {
        digits += 1
      } else if byte == UInt8(ascii: ".") {
        points += 1
      } else {
        return false
      }
    }
    guard digits > 0, points <= 1 else { return false }
    guard parts.count == 2 else { return true }
    var exponent = parts[1]
    if exponent.first == UInt8(ascii: "-") || exponent.first == UInt8(ascii: "+") { exponent = exponent.dropFirst() }
    return (1...4).contains(exponent.count) && exponent.allSatisfy(isDigit)
  }

  private static func isUnsigned32(_ map: EncodedMap, _ key: String) throws(WireError) -> Bool {
    guard case .integer(let number)? = try map.value(for: key)?.content else { return false }
    return UInt32(exactly: number) != nil
  }

  private static func count(_ map: EncodedMap) throws(WireError) -> Int {
    var entries = map.makeIterator()
    var count = 0
    while try entries.next() != nil { count += 1 }
    return count
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

  private static func isHexadecimal(_ byte: UInt8) -> Bool {
    isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte | 0x20)
  }
}
