import DatabaseService
import DocumentModel
import DocumentStore
import WireFormat

// BatchGetDocuments, RunQuery, RunAggregationQuery.
extension GRPCDialect {
  func batchGetDocuments(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let database = try Self.database(of: message)
    var batch = BatchGetDocumentsRequest([])
    var mask: FieldMask?
    var moment = RequestedMoment()
    try decode(message, for: database, call) { decoder in
      var reader = ProtobufReader(message)
      while let field = try reader.next() {
        switch (field.number, field.wireType) {
        case (2, .lengthDelimited):
          let (named, key) = try decoder.documentName(try ProtobufMessageDecoder.text(field))
          try Self.check(named, is: database)
          batch.keys.append(key)
        case (3, .lengthDelimited): mask = try decoder.documentMask(field.bytes)
        case (4, .lengthDelimited): moment.set(transaction: Array(field.bytes))
        case (5, .lengthDelimited): moment.set(newTransaction: try decoder.transactionOptions(field.bytes))
        case (7, .lengthDelimited): moment.set(readTime: try ProtobufMessageDecoder.alignedTimestamp(field.bytes))
        default: break
        }
      }
    }
    batch.consistency = moment.consistency
    batch.newTransaction = moment.newTransaction
    let answer = BatchGetAnswer(try service.batchGetDocuments(batch, in: database))
    try call.send(answer, .batchGet, mask: mask, in: database)
  }

  func runQuery(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let parent = try Self.parent(of: message)
    var query: Query?
    var moment = RequestedMoment()
    try decode(message, for: parent.database, call) { decoder in
      var reader = ProtobufReader(message)
      while let field = try reader.next() {
        switch (field.number, field.wireType) {
        case (2, .lengthDelimited): query = try decoder.query(field.bytes, below: parent.path)
        case (5, .lengthDelimited): moment.set(transaction: Array(field.bytes))
        case (6, .lengthDelimited): moment.set(newTransaction: try decoder.transactionOptions(field.bytes))
        case (7, .lengthDelimited): moment.set(readTime: try ProtobufMessageDecoder.alignedTimestamp(field.bytes))
        default: break
        }
      }
    }
    guard let query else { throw Status(.invalidArgument, "only structured queries are supported") }
    var run = RunQueryRequest(query)
    run.consistency = moment.consistency
    run.newTransaction = moment.newTransaction
    let answer = QueryAnswer(try service.runQuery(run, in: parent.database))
    try call.send(answer, .query, mask: query.projection, in: parent.database)
  }

  func runAggregationQuery(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let parent = try Self.parent(of: message)
    var run: RunAggregationQueryRequest?
    var moment = RequestedMoment()
    try decode(message, for: parent.database, call) { decoder in
      var reader = ProtobufReader(message)
      while let field = try reader.next() {
        switch (field.number, field.wireType) {
        case (2, .lengthDelimited):
          let (query, aggregations) = try decoder.aggregationQuery(field.bytes, below: parent.path)
          run = query.map { RunAggregationQueryRequest($0, aggregations) }
        case (4, .lengthDelimited): moment.set(transaction: Array(field.bytes))
        case (5, .lengthDelimited): moment.set(newTransaction: try decoder.transactionOptions(field.bytes))
        case (6, .lengthDelimited): moment.set(readTime: try ProtobufMessageDecoder.alignedTimestamp(field.bytes))
        default: break
        }
      }
    }
    guard var run else { throw Status(.invalidArgument, "only structured aggregation queries are supported") }
    run.consistency = moment.consistency
    run.newTransaction = moment.newTransaction
    let answer = AggregationAnswer(try service.runAggregationQuery(run, in: parent.database))
    try call.send(answer, .query, mask: nil, in: parent.database)
  }
}
