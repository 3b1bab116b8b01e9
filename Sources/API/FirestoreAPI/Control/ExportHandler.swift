import DatabaseService
import DocumentModel
import GatewayCore
import Transport
import WireFormat

/// Writes and reads Firebase exports on the server's disk, with the requests of the official emulator.
///
/// - `POST /emulator/v1/projects/{p}:export` with `{"database": …, "export_directory": …, "export_name": …}` writes
///   the documents to the folder `export_name` of an existing folder.
/// - `POST /emulator/v1/projects/{p}:import` with `{"database": …, "export_directory": …}` adds the documents of an
///   export. Despite its name, `export_directory` is the path of the file `….overall_export_metadata`; Hearth also
///   accepts the folder.
///
/// The response is `{}`. Source: requests to the official emulator of June 2025. The caller chooses paths of the
/// server's machine, so only callers on that machine are served, and no web pages. Unlike the official emulator, Hearth
/// accepts no path in `export_name`.
struct ExportHandler: Sendable {
  let service: FirestoreService

  /// Exports a database.
  /// - Throws: ``Status`` or `ModelError` if the request is malformed or not from this machine.
  func export(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let fields = try Self.fields(request, ["database", "export_directory", "export_name"])
    let database = try Self.database(fields)
    let (folder, name) = (fields["export_directory"] ?? "", fields["export_name"] ?? "")
    let administrator = try service.administrator(call.caller)
    run(call.responder, database) { [service] in
      try service.exportFolder(database, to: folder, name: name, as: administrator)
    }
  }

  /// Imports an export into a database.
  /// - Throws: ``Status`` or `ModelError` if the request is malformed or not from this machine.
  func `import`(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let fields = try Self.fields(request, ["database", "export_directory"])
    let database = try Self.database(fields)
    let path = fields["export_directory"] ?? ""
    let administrator = try service.administrator(call.caller)
    run(call.responder, database) { [service] in
      try service.importFolder(database, from: path, as: administrator)
    }
  }

  private func run(_ responder: Responder, _ database: DatabaseID, _ body: @escaping @Sendable () throws -> Void) {
    responder.work {
      let outcome = Result { try body() }.mapError { Status($0, database: database) }
      responder.onLoop {
        switch outcome {
        case .failure(let status): responder.sendError(status)
        case .success: responder.sendJSON(Array("{\n}\n".utf8))
        }
      }
    }
  }

  private static func database(_ fields: [String: String]) throws -> DatabaseID {
    do throws(ModelError) {
      return try ResourceName.database(Array((fields["database"] ?? "").utf8))
    } catch {
      // The official emulator has a word of its own for this kind of name.
      let (text, usual) = (error.description, "Document parent name")
      throw Status(.invalidArgument, text.hasPrefix(usual) ? "Database name" + text.dropFirst(usual.count) : text)
    }
  }

  /// Returns the text fields of the body.
  private static func fields(_ request: borrowing HTTPRequest, _ names: Set<String>) throws -> [String: String] {
    guard request.clientAddress == nil else {
      throw Status(.permissionDenied, "Exports are written and read on the server's machine, for callers there only.")
    }
    // Browsers send these headers, and the tools that export do not.
    guard request.header("origin") == nil, request.header("sec-fetch-site") == nil else {
      throw Status(.permissionDenied, "A web page cannot write or read exports on the server's disk.")
    }
    if request.body.isEmpty { return [:] }
    let malformed = Status(.invalidArgument, "Payload isn't valid for request.")
    let tree: JSONTree
    do throws(WireError) { tree = try JSONTree(parsing: Array(request.body)) } catch { throw malformed }
    guard case .object(let members) = tree.kind else { throw malformed }
    var fields: [String: String] = [:]
    for member in members {
      guard let name = names.first(where: { $0 == member.name || camel($0) == member.name }) else { throw malformed }
      guard let text = member.value.text else { throw malformed }
      fields[name] = text
    }
    return fields
  }

  /// Returns a field name in the other spelling of protobuf's JSON, such as `exportName` for `export_name`.
  private static func camel(_ name: String) -> String {
    let parts = name.split(separator: "_")
    return parts.dropFirst().reduce(String(parts[0])) { $0 + $1.prefix(1).uppercased() + $1.dropFirst() }
  }
}
