import Accounts
import DocumentModel
import WireFormat

/// A range of document names below a parent: a collection with everything below it, or a part of that.
struct NameInterval: Equatable, Sendable {
  /// The document above the collection, or the root.
  var parent: ResourcePath
  /// The first name, relative to the documents root. It may be a name that only a bound can have.
  var lower: String
  /// The first name after the range.
  var upper: String

  /// The smallest document ID, in the order of names.
  private static let firstID = "__id\(Int64.min)__"

  /// Returns the range of a collection and everything below it. The bounds are those that Google's tools use to delete
  /// collections recursively.
  static func all(of collection: ResourcePath) -> NameInterval {
    NameInterval(
      parent: collection.parent, lower: "\(collection.text)/\(firstID)", upper: "\(collection.text)\0/\(firstID)")
  }

  /// Returns this range in parts that begin at the names of `cuts`. The cuts must be sorted and inside the range.
  func split(at cuts: [DocumentKey]) -> [NameInterval] {
    let bounds = [lower] + cuts.map(\.path.text) + [upper]
    return zip(bounds, bounds.dropFirst()).map { NameInterval(parent: parent, lower: $0, upper: $1) }
  }
}

extension ServerClient {
  /// Passes the documents of a range in name order to `body`, after the document `last`, and at most `limit`. Returns
  /// their number.
  ///
  /// The query has the form in which Google's tools find everything below a collection: it has no collection ID, so it
  /// also finds documents whose ancestors do not exist.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if the request fails, or the error of `body`.
  func scan(
    _ range: NameInterval, after last: DocumentKey?, limit: Int, at readTime: Timestamp?, _ body: (Found) throws -> Void
  ) throws -> Int {
    var json = JSONWriter(.compact)
    json.beginObject()
    json.key("structuredQuery")
    append(query: range, after: last, limit: limit, to: &json)
    json.append(readTime: readTime)
    json.endObject()
    var elements = ArrayElements()
    var count = 0
    try stream("POST", target(range.parent) + ":runQuery?prettyPrint=false", json.bytes) { piece in
      try elements.feed(piece) { element in
        try parse(element) { root in
          try check(root)
          guard let document = root.member("document") else { return }
          try body(try found(document))
          count += 1
        }
      }
    }
    guard elements.isComplete else { throw interrupted("the response of \(address) is incomplete") }
    return count
  }

  /// Returns the number of documents in a range, or `nil` if the server does not count them.
  func count(_ range: NameInterval, at readTime: Timestamp?) -> Int? {
    var json = JSONWriter(.compact)
    json.beginObject()
    json.key("structuredAggregationQuery")
    json.beginObject()
    json.key("structuredQuery")
    append(query: range, after: nil, limit: nil, to: &json)
    json.key("aggregations")
    json.value(#"[{"alias": "n", "count": {}}]"#)
    json.endObject()
    json.append(readTime: readTime)
    json.endObject()
    guard let body = try? call("POST", target(range.parent) + ":runAggregationQuery", json.bytes) else { return nil }
    return try? JSONText.read(body) { root in
      let number = root.array.first?.member("result")?.member("aggregateFields")?.member("n")?.member("integerValue")
      return number?.text.flatMap { Int($0) } ?? number?.integer
    }
  }

  /// Returns names that divide the collections with an ID into parts of similar size, in any order. Returns none if the
  /// server knows none.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if the server cannot be asked.
  func cuts(ofGroup id: String, countMax: Int, at readTime: Timestamp?) throws -> [DocumentKey] {
    var cuts: [DocumentKey] = []
    var token: String?
    repeat {
      var json = JSONWriter(.compact)
      json.beginObject()
      json.key("structuredQuery")
      json.beginObject()
      json.key("from")
      json.beginArray()
      json.beginObject()
      json.key("collectionId")
      json.string(id)
      json.key("allDescendants")
      json.bool(true)
      json.endObject()
      json.endArray()
      json.appendNameOrder()
      json.endObject()
      json.key("partitionCount")
      json.string(String(countMax))
      if let token {
        json.key("pageToken")
        json.string(token)
      }
      json.append(readTime: readTime)
      json.endObject()
      let body: [UInt8]
      do { body = try call("POST", target(.root) + ":partitionQuery", json.bytes) ?? [] } catch let failure
        as CommandFailure where [400, 404, 501].contains(failure.httpStatus)
      {
        return cuts
      }
      token = try JSONText.read(body) { root in
        for cursor in root.member("partitions")?.array ?? [] {
          guard let name = cursor.member("values")?.array.first?.member("referenceValue")?.text else { continue }
          cuts.append(try ResourceName.document(name.utf8).1)
        }
        let next = root.member("nextPageToken")?.text
        return next?.isEmpty == false ? next : nil
      }
    } while token != nil && cuts.count < countMax
    return cuts
  }

  /// Returns the server's current read time. Costs the read of a document that does not exist.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if the request fails.
  func readTimeNow() throws -> Timestamp? {
    let path = try ResourcePath("hearth/now")
    let body = MapValue([("documents", .array([.string(ResourceName(database: database, path: path).text)]))])
    let response = try call("POST", target(.root) + ":batchGet", body.json) ?? []
    return try JSONText.read(response) { root in
      root.array.first?.member("readTime")?.text.flatMap { Timestamp(rfc3339: $0.utf8) }
    }
  }

  // MARK: Pieces

  private func append(query range: NameInterval, after last: DocumentKey?, limit: Int?, to json: inout JSONWriter) {
    json.beginObject()
    json.key("from")
    json.value(#"[{"allDescendants": true}]"#)
    json.key("where")
    json.beginObject()
    json.key("compositeFilter")
    json.beginObject()
    json.key("op")
    json.string("AND")
    json.key("filters")
    json.beginArray()
    for (op, name) in [("GREATER_THAN_OR_EQUAL", range.lower), ("LESS_THAN", range.upper)] {
      json.beginObject()
      json.key("fieldFilter")
      json.beginObject()
      json.key("field")
      json.value(#"{"fieldPath": "__name__"}"#)
      json.key("op")
      json.string(op)
      json.key("value")
      append(reference: name, to: &json)
      json.endObject()
      json.endObject()
    }
    json.endArray()
    json.endObject()
    json.endObject()
    json.appendNameOrder()
    if let last {
      json.key("startAt")
      json.beginObject()
      json.key("values")
      json.beginArray()
      append(reference: last.path.text, to: &json)
      json.endArray()
      json.key("before")
      json.bool(false)
      json.endObject()
    }
    if let limit {
      json.key("limit")
      json.number(limit)
    }
    json.endObject()
  }

  private func append(reference path: String, to json: inout JSONWriter) {
    json.beginObject()
    json.key("referenceValue")
    json.string("\(database.documentsRoot)/\(path)")
    json.endObject()
  }

  /// Checks an element of a streamed response.
  /// - Throws: ``CommandFailure`` if the element is an error, which ends the response.
  private func check(_ root: JSONValue) throws {
    guard let error = root.member("error") else { return }
    let status = error.member("status")?.text ?? ""
    var failure = interrupted("\(address) ended the response: \(status): \(error.member("message")?.text ?? "")")
    failure.isTemporary = ["UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "ABORTED", "RESOURCE_EXHAUSTED"]
      .contains(status)
    throw failure
  }

  private func interrupted(_ message: String) -> CommandFailure {
    var failure = CommandFailure.failed(message)
    failure.isTemporary = true
    failure.httpStatus = 200
    return failure
  }
}

extension JSONWriter {
  fileprivate mutating func appendNameOrder() {
    key("orderBy")
    value(#"[{"field": {"fieldPath": "__name__"}, "direction": "ASCENDING"}]"#)
  }

  /// Appends the member `readTime` of a request, unless the read has no fixed time.
  mutating func append(readTime: Timestamp?) {
    guard let readTime else { return }
    key("readTime")
    timestamp(readTime)
  }
}
