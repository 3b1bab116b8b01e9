import DatabaseService
import DocumentModel
import WireFormat

/// The response to an ExecutePipeline request (pipelines.md, section 1.5). Every message has the same time.
final class PipelineResponseProducer: ResponseProducer {
  private let cursor: ExecutePipelineCursor
  /// The transaction that the request began, until it is sent.
  private var transaction: TransactionID?
  private var isEmpty = true
  /// The latest result of an analyzed pipeline. The response sends the explanation together with the last result, and
  /// only the end of the results shows which one is the last.
  private var held: HeldResult?

  /// A copy of a result.
  private struct HeldResult {
    let name: [UInt8]?
    let fields: EncodedFields
    let createTime: Timestamp?
    let updateTime: Timestamp?

    init(_ result: PipelineResult) {
      name = result.name.map { [UInt8]($0) }
      fields = EncodedFields(canonical: [UInt8](result.fields.bytes))
      createTime = result.createTime
      updateTime = result.updateTime
    }
  }

  init(_ cursor: ExecutePipelineCursor) {
    self.cursor = cursor
    transaction = cursor.transaction
  }

  func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { cursor.wait(wake) }

  func produce(_ emit: (ExecutePipelineResponse) throws -> Bool) throws -> Bool {
    try cursor.slice { result in
      isEmpty = false
      guard cursor.explain != nil else { return try send(result, to: emit) }
      let before = held
      held = HeldResult(result)
      return try before.map { try send($0, nil, to: emit) } ?? true
    }
    guard cursor.isAtEnd else { return false }
    let explanation = cursor.explanation
    if let last = held {
      held = nil
      _ = try send(last, explanation, to: emit)
    } else if isEmpty || explanation != nil {
      _ = try send(nil, explanation, to: emit)
    }
    return true
  }

  private func send(
    _ held: HeldResult, _ explanation: String?, to emit: (ExecutePipelineResponse) throws -> Bool
  ) throws -> Bool {
    try held.fields.withMap { fields in
      guard let name = held.name else {
        let result = PipelineResult(
          name: nil, fields: fields, createTime: held.createTime, updateTime: held.updateTime)
        return try send(result, explanation, to: emit)
      }
      return try name.withRawBytes { name in
        let result = PipelineResult(
          name: name, fields: fields, createTime: held.createTime, updateTime: held.updateTime)
        return try send(result, explanation, to: emit)
      }
    }
  }

  private func send(
    _ result: PipelineResult?, _ explanation: String? = nil, to emit: (ExecutePipelineResponse) throws -> Bool
  ) throws -> Bool {
    defer { transaction = nil }
    return try emit(
      ExecutePipelineResponse(
        result, transaction: transaction, executionTime: cursor.readTime, explanation: explanation))
  }
}
