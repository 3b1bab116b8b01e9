package import DocumentModel
import WireFormat

extension OrderedCode {
  /// Returns the whole code of a value given as a tree.
  package static func encode(_ value: Value) -> [UInt8] {
    var code: [UInt8] = []
    _ = encode(value, into: &code, budget: .max)
    return code
  }

  /// Appends the code of a value given as a tree, cut after about `budget` bytes. Returns whether the code is whole.
  package static func encode(_ value: Value, into code: inout [UInt8], budget: Int) -> Bool {
    var wire: [UInt8] = []
    ValueCodec.append(value, to: &wire)
    // The bytes were just encoded, so they are a valid value.
    return wire.withUnsafeBytes { bytes in (try? append(EncodedValue(bytes), to: &code, budget: budget)) ?? false }
  }
}
