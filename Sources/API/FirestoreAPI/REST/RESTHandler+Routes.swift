import DatabaseService
package import GatewayCore
package import Transport

// The URLs of google.firestore.v1.Firestore (firestore-api.md, section 1.1). The text after the last `:` is a verb
// only if the method allows it: document IDs may contain `:`, and clients write it as `%3A` if an ID ends like a verb.
extension RESTHandler {
  /// The requests that the API handles.
  package static var routes: [Route<RESTHandler>] {
    [
      row([.get, .head], "{document...}", .always, .any) { try $0.getDocument($1, $2) },
      row([.get, .head], "{collection...}", .always, .any) { try $0.listDocuments($1, $2) },
      row(.post, "{path...}:commit", .withID) { try $0.commit($1, $2) },
      row(.post, "{path...}:batchGet", .always, .any) { try $0.batchGetDocuments($1, $2) },
      row(.post, "{path...}:runQuery", .always, .any) { try $0.runQuery($1, $2) },
      row(.post, "{path...}:runAggregationQuery", .always, .any) { try $0.runAggregationQuery($1, $2) },
      row(.post, "{path...}:partitionQuery", .always, .any) { try $0.partitionQuery($1, $2) },
      row(.post, "{path...}:listCollectionIds", .always, .any) { try $0.listCollectionIds($1, $2) },
      row(.post, "{path...}:batchWrite", .withID) { try $0.batchWrite($1, $2) },
      row(.post, "{path...}:beginTransaction", .always) { try $0.beginTransaction($1, $2) },
      row(.post, "{path...}:rollback", .always) { try $0.rollback($1, $2) },
      row(.post, "{path...}:executePipeline") { try $0.executePipeline($1, $2) },
      row(.post, "{path...}:write") { _, _, _ in
        throw Status(.unimplemented, "Write is available only as a gRPC stream or a WebChannel. Use commit.")
      },
      row(.post, "{path...}", .withID) { try $0.createDocument($1, $2) },
      row(.patch, "{path...}", .withID) { try $0.updateDocument($1, $2) },
      row(.delete, "{path...}", .withID) { handler, call, _ in try handler.deleteDocument(call) },
    ]
  }

  private static func row(
    _ methods: HTTPMethods, _ path: String, _ repetition: RequestRepetition = .never, _ node: RouteNode = .owner,
    _ handle: @escaping @Sendable (RESTHandler, RESTRequest, borrowing HTTPRequest) throws -> Void
  ) -> Route<RESTHandler> {
    Route(methods, DocumentsPath.patterns(path), kind: .rest, access: .caller, repetition: repetition, node: node) {
      handler, request, routed in
      try handle(handler, handler.call(request, routed), request)
    }
  }

  /// Responds with an error, in an array if the method is a streaming one.
  package func refuse(_ error: any Error, _ request: borrowing HTTPRequest, _ responder: Responder) {
    if case RouteError.wrongMethod = error { return responder.sendText(404, "Not Found\n") }
    if let error = error as? BodyTooLarge { return responder.sendTooLarge(bytesMax: error.bytesMax) }
    let path = request.target.pathAndQuery.path
    // Document IDs may end like a verb.
    let isStreaming =
      request.method == .post
      && Self.streamingVerbs.contains { path.suffix($0.utf8CodeUnitCount).elementsEqual($0.bytes) }
    responder.sendError(Status(error, database: DocumentsPath.database(in: path)), inArray: isStreaming)
  }

  /// The methods whose response is a stream of messages.
  private static let streamingVerbs: [StaticString] = [
    ":batchGet", ":runQuery", ":runAggregationQuery", ":executePipeline",
  ]
}

extension StaticString {
  fileprivate var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: utf8Start, count: utf8CodeUnitCount) }
}
