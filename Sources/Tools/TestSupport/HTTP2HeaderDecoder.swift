import CNGHTTP2

/// The decoder of a connection's header blocks, with its table of earlier fields.
package final class HTTP2HeaderDecoder {
  private let inflater: OpaquePointer

  /// Creates a decoder with an empty table.
  /// - Throws: ``LoopbackError`` if there is not enough memory.
  package init() throws {
    var inflater: OpaquePointer?
    guard nghttp2_hd_inflate_new(&inflater) == 0, let inflater else { throw LoopbackError("no header decoder") }
    self.inflater = inflater
  }

  deinit { nghttp2_hd_inflate_del(inflater) }

  /// Decodes the next header block. Decode every block in order, because later blocks may refer to its fields.
  /// - Throws: ``LoopbackError`` if the block is malformed.
  package func fields(of block: [UInt8]) throws -> [(name: String, value: String)] {
    var fields: [(name: String, value: String)] = []
    var rest = block[...]
    while true {
      var field = nghttp2_nv()
      var flags: Int32 = 0
      let count = Array(rest).withUnsafeBufferPointer {
        nghttp2_hd_inflate_hd2(inflater, &field, &flags, $0.baseAddress, $0.count, 1)
      }
      guard count >= 0 else { throw LoopbackError("malformed header block") }
      rest = rest.dropFirst(count)
      let isField = flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0
      if isField {
        let name = UnsafeBufferPointer(start: field.name, count: field.namelen)
        let value = UnsafeBufferPointer(start: field.value, count: field.valuelen)
        fields.append((String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self)))
      }
      if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 || !isField && rest.isEmpty { break }
    }
    nghttp2_hd_inflate_end_headers(inflater)
    return fields
  }
}
