package import DocumentModel
package import WireFormat

/// A row of a pipeline, borrowed while the evaluator reads it.
package struct ExpressionRow {
  /// The fields: those of a stored document, or those that a stage computed.
  package var fields: EncodedMap
  /// The full resource name of the row's document in UTF-8, or `nil` if the row has no name.
  package var name: UnsafeRawBufferPointer?
  package var createTime: Timestamp?
  package var updateTime: Timestamp?
  /// The values of variables, by the numbers that ``ExpressionCompiler`` received.
  package var variables: UnsafeBufferPointer<ExpressionValue>
  /// The score of the row in a `search` stage.
  package var score: Double?

  @inlinable @inline(__always)
  package init(
    fields: EncodedMap, name: UnsafeRawBufferPointer? = nil, createTime: Timestamp? = nil,
    updateTime: Timestamp? = nil,
    variables: UnsafeBufferPointer<ExpressionValue> = UnsafeBufferPointer(start: nil, count: 0), score: Double? = nil
  ) {
    self.fields = fields
    self.name = name
    self.createTime = createTime
    self.updateTime = updateTime
    self.variables = variables
    self.score = score
  }
}

/// Runs the nested pipelines of expressions.
package protocol SubpipelineRunner: AnyObject {
  /// Runs a nested pipeline for a row.
  ///
  /// Appends its result to `out` as the content of a Value message in canonical form: for `array` the array of its
  /// rows, for `scalar` its row or null. Returns `false` if it fails. The runner keeps the reason, and the caller
  /// of the evaluator checks it.
  func run(_ number: Int, isScalar: Bool, for row: ExpressionRow, into out: inout [UInt8]) -> Bool
}
