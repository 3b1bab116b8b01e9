import Testing
import TestSupport

/// Code that reads documents without a grant does not compile. Each case is a small program that the compiler checks
/// against the built modules.
@Suite struct UnauthorizedReadTests {
  struct Case: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let code: String
    /// A part of the error, or `nil` if the program compiles.
    let error: String?

    /// A program that sees what a protocol handler sees.
    static func handler(_ name: String, _ body: String, error: String? = nil) -> Case {
      Case(
        testDescription: name,
        code: """
          import DatabaseService
          import DocumentModel
          import RulesEngine

          func read(_ service: FirestoreService, _ caller: Caller, _ id: DatabaseID, _ key: DocumentKey) throws {
            \(body)
          }
          """, error: error)
    }

    /// A program that sees all internal declarations of the service, as a method of the service does.
    static func method(_ name: String, _ body: String, error: String? = nil) -> Case {
      Case(
        testDescription: name,
        code: """
          @testable import DatabaseService
          import DocumentModel
          import DocumentStore
          import PipelineEngine
          import QueryEngine

          func read(
            _ access: DatabaseAccess, _ key: DocumentKey, _ query: ResolvedQuery, _ plan: PipelinePlan,
            _ response: Continuation
          ) throws {
            try access.read { snapshot in
              \(body)
            }
          }
          """, error: error)
    }
  }

  static let cases: [Case] = [
    .handler(
      "a get for a caller",
      "try service.getDocument(key, in: id, as: caller) { document, _ in print(document.fields.count) }"),
    .handler(
      "a get without a caller",
      "try service.getDocument(key, in: id) { document, _ in print(document.fields.count) }",
      error: "missing argument for parameter 'as' in call"),
    .handler(
      "a get as an invented administrator",
      "try service.getDocument(key, in: id, as: .administrator(revocationCheck: nil)) { _, _ in }",
      error: "enum case 'administrator(revocationCheck:)' is not available due to missing import"),
    .handler(
      "a get as the server itself", "try service.getDocument(key, in: id, as: .admin) { _, _ in }",
      error: "static property 'admin' is not available due to missing import"),
    .handler(
      "a get as an invented user",
      "try service.getDocument(key, in: id, as: .user(RulesAuth(uid: \"ann\", claims: MapValue([])))) { _, _ in }",
      error: "enum case 'user' is not available due to missing import"),
    .handler(
      "the hubs of the listeners", "print(service.watchHubs(as: caller))",
      error: "cannot convert value of type 'Caller' to expected argument type 'Administrator'"),
    .handler(
      "the databases of the service", "print(try service.databases.database(id) as Any)",
      error: "'databases' is inaccessible due to 'private' protection level"),
    .handler(
      "a database without a caller", "print(try service.database(id))",
      error: "'database' is inaccessible due to 'private' protection level"),
    .handler(
      "the database of an access", "print(try service.access(to: id, as: caller).database)",
      error: "'database' is inaccessible due to 'private' protection level"),
    .handler(
      "a snapshot of an access", "try service.access(to: id, as: caller).read { _ in }",
      error: "'read' is inaccessible due to 'internal' protection level"),
    .handler(
      "statistics for any caller", "service.statistics(as: caller) { _ in }",
      error: "cannot convert value of type 'Caller' to expected argument type 'Administrator'"),
    .handler(
      "an invented administrator", "service.statistics(as: Administrator()) { _ in }",
      error: "'Administrator' initializer is inaccessible due to 'fileprivate' protection level"),
    .handler(
      "an invented grant for a file", "_ = FileGrant(.get, bucket: \"b\", name: \"n\")",
      error: "'FileGrant' initializer is inaccessible due to 'fileprivate' protection level"),
    .method(
      "a get with its grant",
      "let grant = try access.grantGet(key, &snapshot); print(snapshot.document(grant)?.fields.count ?? 0)"),
    .method(
      "a get without a grant", "print(snapshot.document(key) as Any)",
      error: "cannot convert value of type 'DocumentKey' to expected argument type 'GetGrant'"),
    .method(
      "an invented grant", "_ = snapshot.document(GetGrant(key: key, document: nil))",
      error: "'GetGrant' initializer is inaccessible due to 'fileprivate' protection level"),
    .method(
      "the reader of a snapshot", "print(snapshot.reader)",
      error: "'reader' is inaccessible due to 'fileprivate' protection level"),
    .method(
      "a query with its grant",
      "let grant = try access.grantQuery(query, &snapshot); _ = try snapshot.results(grant, access.indexes(&snapshot))"),
    .method(
      "a query without a grant", "_ = try snapshot.results(query, access.indexes(&snapshot))",
      error: "cannot convert value of type 'ResolvedQuery' to expected argument type"),
    .method(
      "the grant of a document for a query",
      "let grant = try access.grantGet(key, &snapshot); _ = try snapshot.results(grant, access.indexes(&snapshot))",
      error: "cannot convert value of type 'GetGrant' to expected argument type"),
    .method(
      "a pipeline with its grant",
      """
      let grant = try access.grantPipeline(plan, &snapshot)
      _ = try snapshot.pipeline(grant, in: DatabaseID(project: "p")!, now: Timestamp(uncheckedMicroseconds: 0),
        access.indexes(&snapshot))
      """),
    .method(
      "a pipeline without a grant",
      """
      _ = try snapshot.pipeline(plan, in: DatabaseID(project: "p")!, now: Timestamp(uncheckedMicroseconds: 0),
        access.indexes(&snapshot))
      """, error: "cannot convert value of type 'PipelinePlan' to expected argument type 'PipelineGrant'"),
    .method(
      "the grant of a query for a pipeline",
      """
      let grant = try access.grantQuery(query, &snapshot)
      _ = try snapshot.pipeline(grant, in: DatabaseID(project: "p")!, now: Timestamp(uncheckedMicroseconds: 0),
        access.indexes(&snapshot))
      """, error: "cannot convert value of type 'QueryGrant' to expected argument type 'PipelineGrant'"),
    .method(
      "an invented grant for a pipeline", "_ = PipelineGrant(plan: plan, response: response)",
      error: "'PipelineGrant' initializer is inaccessible due to 'fileprivate' protection level"),
    .method(
      "an access without rules", "_ = Access.unrestricted(Administrator())",
      error: "'Administrator' initializer is inaccessible due to 'fileprivate' protection level"),
  ]

  @Test(.needs(.compiler), arguments: cases)
  func onlyAuthorizedReadsCompile(_ example: Case) throws {
    let (status, output) = try Compiler.check(example.code)
    guard let error = example.error else {
      #expect(status == 0, "this program is authorized and must compile: \(output)")
      return
    }
    let found = output.firstMatch(of: /error: [^\n]*/).map { String($0.output) } ?? "no error"
    print("\(example.testDescription) does not compile, \(found)")
    #expect(status != 0 && output.contains("error: \(error)"), "\(output)")
  }
}
