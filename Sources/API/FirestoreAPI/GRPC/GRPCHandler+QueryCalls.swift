import DatabaseService
import DocumentModel
import WireFormat

// BatchGetDocuments, RunQuery, RunAggregationQuery, PartitionQuery.
extension GRPCHandler {
  func batchGetDocuments(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let database = try Self.database(of: message)
    var batch = BatchGetDocumentsRequest([])
    var mask: FieldMask?
    var moment = ConsistencyFields()
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
    let producer = BatchGetResponseProducer(try service.batchGetDocuments(batch, in: database, as: call.caller))
    try call.send(producer, .batchGet, mask: mask, in: database)
  }

  func runQuery(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let parent = try Self.parent(of: message)
    var query: Query?
    var explain: ExplainMode?
    var moment = ConsistencyFields()
    try decode(message, for: parent.database, call) { decoder in
      var reader = ProtobufReader(message)
      while let field = try reader.next() {
        switch (field.number, field.wireType) {
        case (2, .lengthDelimited): query = try decoder.query(field.bytes, below: parent.path)
        case (5, .lengthDelimited): moment.set(transaction: Array(field.bytes))
        case (6, .lengthDelimited): moment.set(newTransaction: try decoder.transactionOptions(field.bytes))
        case (7, .lengthDelimited): moment.set(readTime: try ProtobufMessageDecoder.alignedTimestamp(field.bytes))
        case (10, .lengthDelimited): explain = try ProtobufMessageDecoder.explainOptions(field.bytes)
        default: break
        }
      }
    }
    guard let query else { throw Status(.invalidArgument, "only structured queries are supported") }
    var run = RunQueryRequest(query)
    run.consistency = moment.consistency
    run.newTransaction = moment.newTransaction
    run.explain = explain
    let producer = QueryResponseProducer(try service.runQuery(run, in: parent.database, as: call.caller))
    try call.send(producer, .query, mask: query.projection, in: parent.database)
  }

  func runAggregationQuery(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let parent = try Self.parent(of: message)
    var run: RunAggregationQueryRequest?
    var explain: ExplainMode?
    var moment = ConsistencyFields()
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
        case (8, .lengthDelimited): explain = try ProtobufMessageDecoder.explainOptions(field.bytes)
        default: break
        }
      }
    }
    guard var run else { throw Status(.invalidArgument, "only structured aggregation queries are supported") }
    run.consistency = moment.consistency
    run.newTransaction = moment.newTransaction
    run.explain = explain
    let producer = AggregationResponseProducer(
      try service.runAggregationQuery(run, in: parent.database, as: call.caller))
    try call.send(producer, .aggregation, mask: nil, in: parent.database)
  }

  func partitionQuery(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    let parent = try Self.parent(of: message)
    var query: Query?
    var partition = PartitionQueryRequest(Query(collectionID: nil))
    try decode(message, for: parent.database, call) { decoder in
      var reader = ProtobufReader(message)
      while let field = try reader.next() {
        switch (field.number, field.wireType) {
        case (2, .lengthDelimited): query = try decoder.query(field.bytes, below: parent.path)
        case (3, .varint): partition.partitionCount = field.int64
        case (4, .lengthDelimited): partition.pageToken = try Self.pageToken(field)
        case (5, .varint): partition.pageSize = Int(field.int32)
        case (6, .lengthDelimited):
          partition.consistency = .readTime(try ProtobufMessageDecoder.alignedTimestamp(field.bytes))
        default: break
        }
      }
    }
    guard let query else { throw Status(.invalidArgument, "only structured queries are supported") }
    partition.query = query
    let cursor = try service.partitionQuery(partition, in: parent.database, as: call.caller)
    CooperativeTask.run(call.exchange) {
      // The client's deadline may have passed since the last slice.
      guard !call.hasResponded else { return true }
      do {
        guard let response = try cursor.slice() else { return false }
        Self.send(response, in: parent.database, call)
      } catch { call.fail(error) }
      return true
    }
  }

  private static func send(_ response: PartitionQueryResponse, in database: DatabaseID, _ call: GRPCCall) {
    call.send { out in
      for key in response.partitions {
        let name = ResourceName(database: database, path: key.path).text
        ProtobufWriter.message(1, to: &out) { cursor in
          ProtobufWriter.message(1, to: &cursor) { ValueCodec.append(.reference(name), to: &$0) }
          ProtobufWriter.bool(2, true, to: &cursor)
        }
      }
      if !response.nextPageToken.isEmpty {
        ProtobufWriter.string(2, Base64.encode(response.nextPageToken), to: &out)
      }
    }
  }
}
