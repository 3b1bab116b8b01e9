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
  /// The content of an encoded value: the least, the greatest, the first or the last. Empty before the
  /// first one.
  private var held: [UInt8] = []
  /// The same value if it owns no bytes, so that most comparisons do not decode.
  private var scalar: ExpressionValue?
  /// The content of an ArrayValue message.
  private var elements: [UInt8] = []
  private var seen = KeySet()
  private var scratch: [UInt8] = []

  /// Creates the state of no rows.
  package init(_ function: AccumulatorFunction) { self.function = function }

  /// The memory of the state, in bytes.
  package var bytes: Int { 256 + held.count + elements.count + seen.bytes }

  // MARK: Rows

  /// Adds a row to `count` without an argument.
  package mutating func addRow() { count += 1 }

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
    case .minimum, .maximum: return value.isNothing || addExtreme(value)
    case .first: return !held.isEmpty || hold(value)
    case .last: return hold(value)
    case .countDistinct: return value.isNothing || insert(value) != nil
    case .arrayAgg: return append(value)
    default:
      guard let isNew = insert(value) else { return false }
      return !isNew || append(value)
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

  private mutating func addExtreme(_ value: ExpressionValue) -> Bool {
    guard !held.isEmpty else { return hold(value) }
    let order: Ordering
    if let scalar {
      order = ExpressionOrder.compare(value, scalar)
    } else {
      order = held.withRawBytes { ExpressionOrder.compare(value, ExpressionValue(EncodedValue($0))) }
    }
    return order == (function == .minimum ? .less : .greater) ? hold(value) : true
  }

  private mutating func hold(_ value: ExpressionValue) -> Bool {
    scratch.removeAll(keepingCapacity: true)
    guard ExpressionWriter.append(value, to: &scratch) else { return false }
    swap(&held, &scratch)
    switch value {
    case .boolean, .integer, .double, .timestamp: scalar = value
    default: scalar = nil
    }
    return true
  }

  private mutating func append(_ value: ExpressionValue) -> Bool {
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
  private mutating func insert(_ value: ExpressionValue) -> Bool? {
    scratch.removeAll(keepingCapacity: true)
    guard ExpressionWriter.appendSortKey(value, to: &scratch) else { return nil }
    return scratch.withRawBytes { seen.insert($0) }
  }

  // MARK: Results

  /// Appends the result as the content of a Value message in canonical form.
  package func appendResult(to out: inout [UInt8]) {
    var result: Value = .null
    switch function {
    case .count, .countIf: result = .integer(Int64(count))
    case .countDistinct: result = .integer(Int64(seen.count))
    case .sum:
      if !hasDoubles, let exact = Int64(exactly: integers) {
        result = .integer(exact)
      } else {
        result = .double(Double(integers) + doubles)
      }
    case .average:
      if count > 0 { result = .double((Double(integers) + doubles) / Double(count)) }
    case .arrayAgg, .arrayAggDistinct: return ProtobufWriter.bytes(EncodedValue.Member.array, elements, to: &out)
    case .minimum, .maximum, .first, .last:
      if !held.isEmpty { return out.append(contentsOf: held) }
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
    switch function {
    case .minimum, .maximum:
      if !later.held.isEmpty { _ = later.held.withRawBytes { addExtreme(ExpressionValue(EncodedValue($0))) } }
    case .first where held.isEmpty, .last where !later.held.isEmpty:
      held = later.held
      scalar = nil
    case .arrayAgg: elements += later.elements
    case .countDistinct:
      var seen = seen
      later.seen.forEach { _ = seen.insert($0) }
      self.seen = seen
    case .arrayAggDistinct:
      later.elements.withRawBytes { buffer in
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
    for part in [held, elements] {
      ProtobufWriter.varint(UInt64(part.count), to: &out)
      out.append(contentsOf: part)
    }
    guard function == .countDistinct else { return }
    // `array_agg_distinct` restores its keys from the elements.
    ProtobufWriter.varint(UInt64(seen.count), to: &out)
    seen.forEach { key in
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
    held.append(raw: try rest.lengthDelimited())
    elements.append(raw: try rest.lengthDelimited())
    if function == .countDistinct {
      let keys = try rest.varint()
      for _ in 0..<keys { _ = seen.insert(try rest.lengthDelimited()) }
    } else if function == .arrayAggDistinct {
      let items = elements
      elements = []
      try items.withRawBytes { (buffer) throws(WireError) in
        var iterator = EncodedArray(buffer).makeIterator()
        while let item = try iterator.next() { _ = add(ExpressionValue(item)) }
      }
    }
    bytes = UnsafeRawBufferPointer(rebasing: bytes[(offset + rest.position)...])
  }
}
