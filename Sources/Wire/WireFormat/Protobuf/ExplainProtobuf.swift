package import DocumentModel

extension DocumentProtobuf {
  /// Appends the content of a `google.firestore.v1.ExplainMetrics`.
  package static func append(_ metrics: ExplainMetrics, to out: inout [UInt8]) {
    ProtobufWriter.message(1, to: &out) { summary in
      for members in metrics.indexStructs {
        ProtobufWriter.message(1, to: &summary) { append(members, to: &$0) }
      }
    }
    guard let execution = metrics.execution else { return }
    ProtobufWriter.message(2, to: &out) { stats in
      ProtobufWriter.int64(1, Int64(execution.results), to: &stats)
      ProtobufWriter.message(3, to: &stats) { duration in
        ProtobufWriter.int64(1, execution.microseconds / 1_000_000, to: &duration)
        ProtobufWriter.int64(2, execution.microseconds % 1_000_000 * 1000, to: &duration)
      }
      ProtobufWriter.int64(4, Int64(execution.readOperations), to: &stats)
      ProtobufWriter.message(5, to: &stats) { append(execution.debugStruct, to: &$0) }
    }
  }

  /// Appends the content of a `google.protobuf.Struct`.
  private static func append(_ members: [StructMember], to out: inout [UInt8]) {
    for (key, value) in members {
      ProtobufWriter.message(1, to: &out) { entry in
        ProtobufWriter.string(1, key.description, to: &entry)
        ProtobufWriter.message(2, to: &entry) { out in
          switch value {
          case .text(let text): ProtobufWriter.string(3, text, to: &out)
          case .object(let members): ProtobufWriter.message(5, to: &out) { append(members, to: &$0) }
          }
        }
      }
    }
  }
}
