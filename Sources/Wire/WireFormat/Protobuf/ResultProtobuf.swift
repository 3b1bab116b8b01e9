package import DocumentModel

extension DocumentProtobuf {
  /// Appends the content of a `google.firestore.v1.WriteResult`. It is empty for a delete.
  package static func append(_ result: WriteResult, to out: inout [UInt8]) {
    // Only stored bytes can be damaged, and a result is decoded.
    try? result.appendProtobuf(to: &out)
  }

  /// Appends the content of a `google.rpc.Status`. Code 0 means success and is not written.
  package static func append(code: Int, message: String, to out: inout [UInt8]) {
    if code != 0 { ProtobufWriter.int64(1, Int64(code), to: &out) }
    if !message.isEmpty { ProtobufWriter.string(2, message, to: &out) }
  }
}
