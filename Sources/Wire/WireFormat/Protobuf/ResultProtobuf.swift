package import DocumentModel

extension DocumentProtobuf {
  /// Appends the content of a `google.firestore.v1.WriteResult`. It is empty for a delete.
  package static func append(_ result: WriteResult, to out: inout [UInt8]) {
    if let time = result.updateTime { ProtobufWriter.timestamp(1, time, to: &out) }
    for value in result.transformResults {
      ProtobufWriter.message(2, to: &out) { ValueCodec.append(value, to: &$0) }
    }
  }

  /// Appends the content of a `google.rpc.Status`. Code 0 means success and is not written.
  package static func append(code: Int, message: String, to out: inout [UInt8]) {
    if code != 0 { ProtobufWriter.int64(1, Int64(code), to: &out) }
    if !message.isEmpty { ProtobufWriter.string(2, message, to: &out) }
  }

  /// Appends the content of a `google.firestore.v1.AggregationResult`.
  package static func append(_ values: [(alias: String, value: Value)], to out: inout [UInt8]) {
    for (alias, value) in values {
      ProtobufWriter.message(2, to: &out) { entry in
        ProtobufWriter.string(1, alias, to: &entry)
        ProtobufWriter.message(2, to: &entry) { ValueCodec.append(value, to: &$0) }
      }
    }
  }
}
