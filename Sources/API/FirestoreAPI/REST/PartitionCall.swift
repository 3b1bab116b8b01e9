import GatewayCore
import DatabaseService
import DocumentModel
import Transport
import WireFormat

// PartitionQuery.
extension RESTHandler {
  func partitionQuery(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly()
    let parent = try call.target.parent()
    let partition = try decode(request, call) { (decoder, root) throws(WireError) -> PartitionQueryRequest? in
      guard let root else { return nil }
      return try Self.partitionQueryRequest(root, below: parent, decoder)
    }
    guard let partition else { throw Status(.invalidArgument, "only structured queries are supported") }
    let cursor = try service.partitionQuery(partition, in: call.database, as: call.caller)
    CooperativeTask.run(call.responder.exchange) {
      do {
        guard let response = try cursor.slice() else { return false }
        Self.send(response, call)
      } catch {
        call.responder.sendError(Status(error, database: call.database))
      }
      return true
    }
  }

  private static func send(_ response: PartitionQueryResponse, _ call: RESTRequest) {
    call.send { json in
      if !response.partitions.isEmpty {
        json.key("partitions")
        json.beginArray()
        for key in response.partitions {
          json.beginObject()
          json.key("values")
          json.beginArray()
          json.beginObject()
          json.key("referenceValue")
          json.name(key, in: call.database)
          json.endObject()
          json.endArray()
          json.key("before")
          json.bool(true)
          json.endObject()
        }
        json.endArray()
      }
      json.pageToken(response.nextPageToken)
    }
  }

  private static func partitionQueryRequest(
    _ root: JSONValue, below parent: ResourcePath, _ decoder: JSONMessageDecoder
  ) throws(WireError) -> PartitionQueryRequest? {
    var query: Query?
    var partition = PartitionQueryRequest(Query(collectionID: nil))
    var members = try decoder.members(of: root, "google.firestore.v1.PartitionQueryRequest")
    while let (name, value) = members.next() {
      switch name {
      case "structuredQuery", "structured_query":
        decoder.enter("structured_query")
        query = try decoder.query(value, below: parent)
        decoder.leave()
      case "partitionCount", "partition_count":
        partition.partitionCount = try decoder.int64(value, "partition_count")
      case "pageSize", "page_size": partition.pageSize = Int(try decoder.int32(value, "page_size"))
      case "pageToken", "page_token": partition.pageToken = try decoder.pageToken(value)
      case "readTime", "read_time":
        partition.consistency = .readTime(try decoder.alignedTimestamp(value, "read_time"))
      case "parent", "requestOptions", "request_options": break
      default: throw decoder.unknown(name)
      }
    }
    guard let query else { return nil }
    partition.query = query
    return partition
  }
}
