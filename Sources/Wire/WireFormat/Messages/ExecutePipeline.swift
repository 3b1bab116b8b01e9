package import DocumentModel

/// The request of ExecutePipeline.
package struct ExecutePipelineRequest: DecodableMessage, Equatable, Sendable {
  package static let typeName: StaticString = "google.firestore.v1.ExecutePipelineRequest"
  /// The stages and options.
  package private(set) var pipeline: StructuredPipeline
  /// The name of the database in the body, or empty. Over REST, the URL names the database too.
  package private(set) var database = ""
  /// Whether the request has a pipeline.
  private var hasPipeline = true
  /// The state to read.
  package var consistency = ConsistencySelector.latest
  /// The transaction to begin and to read in, instead of ``consistency``.
  package var newTransaction: TransactionMode?
  /// Whether the transaction ends after the last result.
  package var endsTransaction = false

  /// Requests results of the current state.
  package init(_ pipeline: StructuredPipeline) { self.pipeline = pipeline }

  /// Creates a request whose pipeline is decoded later.
  package init() {
    pipeline = StructuredPipeline([])
    hasPipeline = false
  }

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "structured_pipeline") {
      pipeline = try field.message(StructuredPipelineMembers())
      hasPipeline = true
    } else if field.matches(1, "database") {
      database = try field.string()
    } else if field.matches(9, "auto_commit_transaction", .varint) {
      endsTransaction = try field.bool()
    } else if try !field.reads(
      at: &consistency, in: &newTransaction, transaction: 5, newTransaction: 6, readTime: 7)
    {
      field.ignore("request_options")
    }
  }

  /// Returns the request if it has a structured pipeline.
  ///
  /// - Throws: ``WireError/model(_:)``.
  package func decoded() throws(WireError) -> ExecutePipelineRequest {
    guard hasPipeline else { throw .model(.pipelineNotStructured) }
    return self
  }
}

/// A row of a pipeline's results: a `google.firestore.v1.Document` that has only what the row still has. It borrows its
/// bytes.
package struct PipelineResult: EncodableMessage {
  /// The full name of the document, in UTF-8, or `nil` if the row has none.
  package let name: UnsafeRawBufferPointer?
  package let fields: EncodedMap
  package let createTime: Timestamp?
  package let updateTime: Timestamp?
  /// The version of the stored document that has the name and from which the row was made, or `nil`. It is not part of
  /// the message.
  package let readVersion: Int64?

  package init(
    name: UnsafeRawBufferPointer?, fields: EncodedMap, createTime: Timestamp? = nil, updateTime: Timestamp? = nil,
    readVersion: Int64? = nil
  ) {
    self.name = name
    self.fields = fields
    self.createTime = createTime
    self.updateTime = updateTime
    self.readVersion = readVersion
  }

  package func append(to out: inout some MessageWriter) throws(WireError) {
    if let name {
      out.field(1, "name")
      out.text(name)
    }
    if !fields.isEmpty {
      out.field(2, "fields")
      try out.fields(fields)
    }
    if let createTime { out.timestamp(3, "createTime", createTime) }
    if let updateTime { out.timestamp(4, "updateTime", updateTime) }
  }
}

/// A message of the response of ExecutePipeline. It contains at most one row.
package struct ExecutePipelineResponse: EncodableMessage {
  private let result: PipelineResult?
  /// The transaction that the request began, in the first message.
  private let transaction: TransactionID?
  /// The time of the state that was read.
  private let executionTime: Timestamp
  /// The explanation, in the last message.
  private let explanation: String?

  package init(
    _ result: PipelineResult? = nil, transaction: TransactionID? = nil, executionTime: Timestamp,
    explanation: String? = nil
  ) {
    self.result = result
    self.transaction = transaction
    self.executionTime = executionTime
    self.explanation = explanation
  }

  package func append(to out: inout some MessageWriter) throws(WireError) {
    if let transaction { out.bytes(1, "transaction", transaction.bytes) }
    if let result {
      out.beginList(2, "results")
      try out.message(result)
      out.endList()
    }
    out.timestamp(3, "executionTime", executionTime)
    if let explanation {
      out.message(4, "explainStats") { out in
        out.field(1, "data")
        out.anyString(explanation)
      }
    }
  }
}
