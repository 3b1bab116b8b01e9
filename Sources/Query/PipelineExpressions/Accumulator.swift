import DocumentModel
package import WireFormat

/// The running state of one accumulator over the rows of one group.
///
/// The states of parts of a group can be encoded, so that groups spill to scratch files, and merged in the order of
/// their rows.
package struct Accumulator {
  private let function: AccumulatorFunction
  private var count = 0
  /// The sum of the integers in 128 bits, so that the order of the rows does not decide about an overflow.
  private var integers: Int128 = 0
  private var doubles = 0.0
  private var hasDoubles = false
  /// One element if the function keeps values, otherwise none, so that a group of numbers stays small.
  private var kept: [KeptValues] = []

  /// Creates the state of no rows.
  package init(_ function: AccumulatorFunction) {
    self.function = function
    if isVariable { kept.append(KeptValues()) }
  }

  /// The memory of the state, in bytes.
  package var bytes: Int { 64 + (isVariable ? kept[0].bytes : 0) }

  /// Whether ``bytes`` can change.
  package var isVariable: Bool { function.keepsValues }

  // MARK: Rows

  /// Adds a row to `count` without an argument.
  package mutating func addRow() { count += 1 }

  /// Adds rows to `count` without an argument.
  package mutating func addRows(_ rows: Int) { count += rows }

  /// Adds the value of the argument on the next row. Returns `false`, and leaves the state as it was, if the value is
  /// or contains an error, except for `count_if`, which does not count errors.
  package mutating func add(_ value: ExpressionValue) -> Bool {
    if function == .countIf {
      if value.isTrue { count += 1 }
      return true
    }
    if case .error = value { return false }
    switch function {
    case .count:
      if !value.isNothing { count += 1 }
      return true
    case .sum, .average:
      add(number: value.ordinary)
      return true
    case .minimum, .maximum: return value.isNothing || kept[0].addExtreme(value, isLeast: function == .minimum)
    case .first: return !kept[0].held.isEmpty || kept[0].hold(value)
    case .last: return kept[0].hold(value)
    case .countDistinct: return value.isNothing || kept[0].insert(value) != nil
    case .arrayAgg: return kept[0].append(value)
    default:
      guard let isNew = kept[0].insert(value) else { return false }
      return !isNew || kept[0].append(value)
    }
  }

  private mutating func add(number: ExpressionValue) {
    switch number {
    case .integer(let number):
      integers += Int128(number)
      count += 1
    case .double(let number):
      doubles += number
      hasDoubles = true
      count += 1
    default: break  // Values that are not numbers are ignored.
    }
  }

  // MARK: Results

  /// Appends the result as the content of a Value message in canonical form.
  package func appendResult(to out: inout [UInt8]) {
    var result: Value = .null
    switch function {
    case .count, .countIf: result = .integer(Int64(count))
    case .countDistinct: result = .integer(Int64(kept[0].seen.count))
    case .sum:
      if !hasDoubles, let exact = Int64(exactly: integers) {
        result = .integer(exact)
      } else {
        result = .double(Double(integers) + doubles)
      }
    case .average:
      if count > 0 { result = .double((Double(integers) + doubles) / Double(count)) }
    case .arrayAgg, .arrayAggDistinct:
      return ProtobufWriter.bytes(EncodedValue.Member.array, kept[0].elements, to: &out)
    case .minimum, .maximum, .first, .last:
      if !kept[0].held.isEmpty { return out.append(contentsOf: kept[0].held) }
    }
    ValueCodec.append(result, to: &out)
  }

  // MARK: Parts of a group

  /// Adds the rows of another part of the group, which follow the rows of this part.
  package mutating func merge(_ later: Accumulator) {
    count += later.count
    integers += later.integers
    doubles += later.doubles
    hasDoubles = hasDoubles || later.hasDoubles
    guard isVariable, let other = later.kept.first else { return }
    switch function {
    case .minimum, .maximum:
      guard !other.held.isEmpty else { return }
      let isLeast = function == .minimum
      other.held.withUnsafeBytes {
        _ = kept[0].addExtreme(ExpressionValue(EncodedValue($0)), isLeast: isLeast)
      }
    case .first where kept[0].held.isEmpty, .last where !other.held.isEmpty: kept[0].take(other)
    case .arrayAgg: kept[0].elements += other.elements
    case .countDistinct: other.seen.forEach { _ = kept[0].seen.insert($0) }
    case .arrayAggDistinct:
      other.elements.withRawBytes { buffer in
        var items = EncodedArray(buffer).makeIterator()
        while let item = (try? items.next()) ?? nil { _ = add(ExpressionValue(item)) }
      }
    default: break
    }
  }

  /// Appends the state, for ``init(_:decoding:)``.
  package func encode(to out: inout [UInt8]) {
    ProtobufWriter.varint(UInt64(count), to: &out)
    withUnsafeBytes(of: integers.littleEndian) { out.append(raw: $0) }
    withUnsafeBytes(of: doubles.bitPattern.littleEndian) { out.append(raw: $0) }
    out.append(hasDoubles ? 1 : 0)
    guard isVariable else { return }
    for part in [kept[0].held, kept[0].elements] {
      ProtobufWriter.varint(UInt64(part.count), to: &out)
      out.append(contentsOf: part)
    }
    guard function == .countDistinct else { return }
    // `array_agg_distinct` restores its keys from the elements.
    ProtobufWriter.varint(UInt64(kept[0].seen.count), to: &out)
    kept[0].seen.forEach { key in
      ProtobufWriter.varint(UInt64(key.count), to: &out)
      out.append(raw: key)
    }
  }

  /// Restores a state from the front of `bytes`, and removes it from there.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are damaged.
  package init(_ function: AccumulatorFunction, decoding bytes: inout UnsafeRawBufferPointer) throws(WireError) {
    self.init(function)
    var reader = ProtobufReader(bytes)
    count = Int(truncatingIfNeeded: try reader.varint())
    var offset = reader.position
    guard bytes.count >= offset + 25 else { throw .malformedProtobuf("truncated accumulator") }
    integers = Int128(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int128.self))
    doubles = Double(
      bitPattern: UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 16, as: UInt64.self)))
    hasDoubles = bytes[offset + 24] == 1
    offset += 25
    var rest = ProtobufReader(UnsafeRawBufferPointer(rebasing: bytes[offset...]))
    guard isVariable else {
      bytes = UnsafeRawBufferPointer(rebasing: bytes[offset...])
      return
    }
    kept[0].held.append(raw: try rest.lengthDelimited())
    kept[0].elements.append(raw: try rest.lengthDelimited())
    if function == .countDistinct {
      let keys = try rest.varint()
      for _ in 0..<keys { _ = kept[0].seen.insert(try rest.lengthDelimited()) }
    } else if function == .arrayAggDistinct {
      let items = kept[0].elements
      kept[0].elements = []
      try items.withRawBytes { (buffer) throws(WireError) in
        var iterator = EncodedArray(buffer).makeIterator()
        while let item = try iterator.next() { _ = add(ExpressionValue(item)) }
      }
    }
    bytes = UnsafeRawBufferPointer(rebasing: bytes[(offset + rest.position)...])
  }
}

/// The values that an accumulator keeps.
private struct KeptValues {
  /// The content of an encoded value: the least, the greatest, the first or the last. Empty before the first one.
  var held: [UInt8] = []
  /// The same value if it owns no bytes, so that most comparisons do not decode.
  private var scalar: ExpressionValue?
  /// The content of an ArrayValue message.
  var elements: [UInt8] = []
  var seen = KeySet()
  private var scratch: [UInt8] = []

  /// The memory of the values, in bytes.
  var bytes: Int { 192 + held.count + elements.count + seen.bytes }

  /// Takes the value that another one holds.
  mutating func take(_ other: KeptValues) {
    held = other.held
    scalar = nil
  }

  mutating func addExtreme(_ value: ExpressionValue, isLeast: Bool) -> Bool {
    guard !held.isEmpty else { return hold(value) }
    let order: Ordering
    if let scalar {
      order = ExpressionOrder.compare(value, scalar)
    } else {
      order = held.withRawBytes { ExpressionOrder.compare(value, ExpressionValue(EncodedValue($0))) }
    }
    return order == (isLeast ? .less : .greater) ? hold(value) : true
  }

  mutating func hold(_ value: ExpressionValue) -> Bool {
    scratch.removeAll(keepingCapacity: true)
    guard ExpressionWriter.append(value, to: &scratch) else { return false }
    swap(&held, &scratch)
    switch value {
    case .boolean, .integer, .double, .timestamp: scalar = value
    default: scalar = nil
    }
    return true
  }

  mutating func append(_ value: ExpressionValue) -> Bool {
    let before = elements.count
    let start = ProtobufWriter.beginMessage(1, to: &elements)
    guard ExpressionWriter.append(value, to: &elements) else {
      elements.removeLast(elements.count - before)
      return false
    }
    ProtobufWriter.endMessage(start, in: &elements)
    return true
  }

  /// Inserts the key of a value into ``seen``. Null and absent have the same key, because both become null in an array.
  mutating func insert(_ value: ExpressionValue) -> Bool? {
    scratch.removeAll(keepingCapacity: true)
    guard ExpressionWriter.appendSortKey(value, to: &scratch) else { return nil }
    return scratch.withRawBytes { seen.insert($0) }
  }
}
