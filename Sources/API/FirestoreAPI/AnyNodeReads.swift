import DocumentModel
package import GatewayCore
package import Transport
import WireFormat

extension AnyNodeRequests {
  /// The requests that read documents, over REST, gRPC and WebChannel. Some of them name a transaction or a time: see
  /// ``databaseRead(by:of:)``.
  package static let forDocuments = AnyNodeRequests(
    ChangeFeedHandler.heads + RESTHandler.heads + GRPCHandler.heads + WebChannelHandler.heads)

  /// Returns the database of a project that a request reads, if any node can handle the request. The body must have
  /// arrived, unless its form is ``Form/stream``.
  ///
  /// Returns `nil` if the owner must handle it: because it may name a transaction, which is in the owner's process, or a
  /// time, up to which only the owner can promise that no more commits come; or because the request does not say here which database it reads.
  /// A request is never wrong at the owner, so in doubt the result is `nil`.
  package static func databaseRead(by request: borrowing HTTPRequest, of project: String) -> String? {
    let (path, query) = request.target.pathAndQuery
    if let method = path.dropping("/google.firestore.v1.Firestore/") {
      if method.elementsEqual("Listen".utf8) { return StreamDatabase(request).databaseOfHead(in: project) }
      if method.elementsEqual("Listen/channel".utf8) { return channelDatabase(query, of: project) }
      return message(request.body, of: method, in: project)
    }
    guard !mayName(momentIn: query), !mayName(momentInJSON: request.body) else { return nil }
    if isUsual(path, of: project) { return DatabaseID.defaultDatabase }
    guard let id = DocumentsPath.database(in: path), id.project.utf8.elementsEqual(project.utf8) else { return nil }
    return id.database
  }

  /// Whether a path is below the default database of a project, without an encoded character before that. Cost: no
  /// allocation.
  private static func isUsual(_ path: UnsafeRawBufferPointer, of project: String) -> Bool {
    guard let rest = path.dropping("/v1/projects/"), rest.count > project.utf8.count else { return false }
    let end = project.utf8.count
    return UnsafeRawBufferPointer(rebasing: rest[..<end]).elementsEqual(project.utf8)
      && UnsafeRawBufferPointer(rebasing: rest[end...]).dropping("/databases/(default)/documents") != nil
  }

  /// Returns the database in the query of a request that opens a channel.
  private static func channelDatabase(_ query: UnsafeRawBufferPointer, of project: String) -> String? {
    guard var name = (try? ChannelParameters(query))?.database else { return nil }
    return name.withUTF8 { database(in: UnsafeRawBufferPointer($0), of: project) }
  }

  /// Whether a query has one of the parameters `transaction`, `newTransaction` and `readTime`, or is malformed.
  private static func mayName(momentIn query: UnsafeRawBufferPointer) -> Bool {
    guard let parameters = try? QueryParameters(query) else { return true }
    return parameters.value("transaction") != nil || parameters.value("newTransaction") != nil
      || parameters.value("readTime") != nil
  }

  /// Whether JSON may have such a member, in any spelling.
  private static func mayName(momentInJSON text: UnsafeRawBufferPointer) -> Bool {
    func contains(_ part: StaticString) -> Bool {
      var start = text.offset(of: part.utf8Start[0])
      while start + part.utf8CodeUnitCount <= text.count {
        if UnsafeRawBufferPointer(rebasing: text[start...]).dropping(part) != nil { return true }
        start = text.offset(of: part.utf8Start[0], from: start + 1)
      }
      return false
    }
    // The last one begins an escape, which could hide a name.
    return contains("ransaction") || contains("\"read") || contains("\\u")
  }

  /// The fields of each message besides those for a transaction and a time (firestore.proto).
  private static func plainFields(of method: UnsafeRawBufferPointer) -> Set<Int>? {
    func isNamed(_ name: StaticString) -> Bool { method.dropping(name)?.isEmpty ?? false }
    if isNamed("GetDocument") { return [1, 2] }
    if isNamed("ListDocuments") { return [1, 2, 3, 4, 6, 7, 12] }
    if isNamed("BatchGetDocuments") { return [1, 2, 3] }
    if isNamed("RunQuery") { return [1, 2, 10] }
    if isNamed("RunAggregationQuery") { return [1, 2, 8] }
    if isNamed("PartitionQuery") { return [1, 2, 3, 4, 5] }
    if isNamed("ListCollectionIds") { return [1, 2, 3] }
    return nil
  }

  private static func message(
    _ body: UnsafeRawBufferPointer, of method: UnsafeRawBufferPointer, in project: String
  ) -> String? {
    guard let plain = plainFields(of: method), let (message, isCompressed) = try? GRPCFrame.single(body), !isCompressed
    else { return nil }
    var reader = ProtobufReader(message)
    var database: String?
    do throws(WireError) {
      while let field = try reader.next() {
        guard plain.contains(field.number) else { return nil }
        // The last one counts, as in any protobuf message.
        if field.number == 1 { database = Self.database(in: field.bytes, of: project) }
      }
    } catch { return nil }
    return database
  }

  /// Returns the database in a resource name: `projects/{project}/databases/{database}`, and perhaps more.
  private static func database(in name: UnsafeRawBufferPointer, of project: String) -> String? {
    let parts = name.split(separator: UInt8(ascii: "/"), maxSplits: 4, omittingEmptySubsequences: false)
    guard parts.count >= 4, parts[0].elementsEqual("projects".utf8), parts[1].elementsEqual(project.utf8),
      parts[2].elementsEqual("databases".utf8), !parts[3].isEmpty
    else { return nil }
    return String(decoding: parts[3], as: UTF8.self)
  }
}
