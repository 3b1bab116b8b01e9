import DocumentModel
import KeyEncoding
import WireFormat

/// Writes computed values as canonical bytes: for rows, responses, group keys and sort keys.
package enum ExpressionWriter {
  /// Appends the content of a Value message in canonical form. Absent is written as null. Returns `false`, and leaves
  /// part of the value in `out`, if the value is or contains an error, or is nested deeper than
  /// ``ExpressionLimits/valueDepthMax`` inside `depth` maps, or if `out` becomes longer than
  /// ``ExpressionLimits/rowBytesMax``.
  ///
  /// Cost: one pass. Values that were read from a row are copied without decoding.
  package static func append(_ value: ExpressionValue, to out: inout [UInt8], depth: Int = 0) -> Bool {
    guard out.count <= ExpressionLimits.rowBytesMax else { return false }
    switch value {
    case .error: return false
    case .absent, .null: ProtobufWriter.int64(EncodedValue.Member.null, 0, to: &out)
    case .boolean(let flag): ProtobufWriter.bool(EncodedValue.Member.boolean, flag, to: &out)
    case .integer(let number): ProtobufWriter.int64(EncodedValue.Member.integer, number, to: &out)
    case .double(let number):
      ProtobufWriter.double(EncodedValue.Member.double, number.isNaN ? .nan : number, to: &out)
    case .timestamp(let time): ProtobufWriter.timestamp(EncodedValue.Member.timestamp, time, to: &out)
    case .string(let text): ProtobufWriter.bytes(EncodedValue.Member.string, text, to: &out)
    case .bytes(let bytes): ProtobufWriter.bytes(EncodedValue.Member.bytes, bytes, to: &out)
    case .reference(let name): ProtobufWriter.bytes(EncodedValue.Member.reference, name, to: &out)
    case .geoPoint(let point): ProtobufWriter.geoPoint(EncodedValue.Member.geoPoint, point, to: &out)
    case .vector(let bytes), .bson(let bytes): ProtobufWriter.bytes(EncodedValue.Member.map, bytes, to: &out)
    case .encodedMap(let bytes):
      guard depth == 0 || isShallow(bytes, isMap: true, depth: depth) else { return false }
      ProtobufWriter.bytes(EncodedValue.Member.map, bytes, to: &out)
    case .encodedArray(let bytes):
      guard depth == 0 || isShallow(bytes, isMap: false, depth: depth) else { return false }
      ProtobufWriter.bytes(EncodedValue.Member.array, bytes, to: &out)
    case .array(let items):
      guard depth < ExpressionLimits.valueDepthMax else { return false }
      let start = ProtobufWriter.beginMessage(EncodedValue.Member.array, to: &out)
      for item in items {
        let itemStart = ProtobufWriter.beginMessage(1, to: &out)
        guard append(item, to: &out, depth: depth + 1) else { return false }
        ProtobufWriter.endMessage(itemStart, in: &out)
      }
      ProtobufWriter.endMessage(start, in: &out)
    case .map(let entries):
      guard depth < ExpressionLimits.valueDepthMax else { return false }
      let start = ProtobufWriter.beginMessage(EncodedValue.Member.map, to: &out)
      for entry in entries {
        let entryStart = ProtobufWriter.beginMessage(1, to: &out)
        ProtobufWriter.bytes(1, entry.key, to: &out)
        let valueStart = ProtobufWriter.beginMessage(2, to: &out)
        guard append(entry.value, to: &out, depth: depth + 1) else { return false }
        ProtobufWriter.endMessage(valueStart, in: &out)
        ProtobufWriter.endMessage(entryStart, in: &out)
      }
      ProtobufWriter.endMessage(start, in: &out)
    }
    return true
  }

  /// Whether the encoded items, which are inside `depth` computed levels, end before the limit of nesting.
  private static func isShallow(_ bytes: UnsafeRawBufferPointer, isMap: Bool, depth: Int) -> Bool {
    guard depth < ExpressionLimits.valueDepthMax else { return false }
    do throws(WireError) {
      if isMap {
        var entries = EncodedMap(mapValue: bytes).makeIterator()
        while let entry = try entries.next() {
          guard try isShallow(entry.value, depth: depth + 1) else { return false }
        }
      } else {
        var items = EncodedArray(bytes).makeIterator()
        while let item = try items.next() {
          guard try isShallow(item, depth: depth + 1) else { return false }
        }
      }
      return true
    } catch {
      return false
    }
  }

  private static func isShallow(_ value: EncodedValue, depth: Int) throws(WireError) -> Bool {
    switch try value.content {
    case .map(let map): isShallow(map.bytes, isMap: true, depth: depth)
    case .array(let array): isShallow(array.bytes, isMap: false, depth: depth)
    default: true
    }
  }

  /// Appends bytes that sort in the order of `sort`, and that are equal exactly if the values are equal. Absent is
  /// written as null. Bytes after about `budget` are cut as in the entries of indexes. Returns `false` if the value is or
  /// contains an error.
  package static func appendSortKey(_ value: ExpressionValue, to out: inout [UInt8], budget: Int = .max) -> Bool {
    switch value {
    case .integer(let number):
      OrderedCode.append(integer: number, to: &out)
      return true
    case .double(let number):
      OrderedCode.append(double: number, to: &out)
      return true
    // The code of a text has at most two bytes for each of its own, a label and an end.
    case .string(let text) where text.count < budget / 2 - 3:
      OrderedCode.append(string: text, to: &out)
      return true
    default: break
    }
    var bytes: [UInt8] = []
    guard append(value, to: &bytes) else { return false }
    return bytes.withRawBytes { buffer in
      do throws(WireError) {
        try OrderedCode.append(EncodedValue(buffer), to: &out, budget: budget)
        return true
      } catch {
        return false
      }
    }
  }

  /// Appends bytes that are equal exactly if the values are equal and belong to one group. Absent is a group of its
  /// own. Returns `false` if the value is or contains an error.
  package static func appendGroupKey(_ value: ExpressionValue, to out: inout [UInt8]) -> Bool {
    if case .absent = value {
      out.append(0)
      return true
    }
    return appendSortKey(value, to: &out)
  }
}
