import DatabaseService
import DocumentModel
import Transport

/// What test suites do to an emulator (firestore-api.md, section 11.3). Only where everybody is admitted.
///
/// - `DELETE /emulator/v1/projects/{p}/databases/{d}/documents` clears a database.
final class ControlDialect: Sendable {
  private let service: Service

  init(_ service: Service) { self.service = service }

  func handle(_ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest, _ reply: Reply) {
    do {
      guard let target = try RESTTarget(path, takesVerb: false), target.segmentCount == 0,
        request.method == .delete
      else { return reply.sendText(404, "Not Found\n") }
      try service.clear(target.database) { result in
        reply.onLoop {
          switch result {
          case .success: reply.sendJSON(Array("{}\n".utf8))
          case .failure(let status): reply.sendError(status)
          }
        }
      }
    } catch {
      reply.sendError(Status(error, database: nil))
    }
  }
}
