package import DocumentModel
package import RulesEngine

/// A case: a request, and the decision that it expects.
package struct RuleTest: Sendable {
  /// The request of a case.
  package enum Operation: Sendable {
    /// Reads a document.
    case get(DocumentKey)
    /// Runs a query.
    case list(Query)
    /// Runs a pipeline.
    case pipeline(TestPipeline)
    /// Writes documents atomically.
    case commit([TestWrite])
    /// Requests one document as the hosted test API describes it, with mocked lookups.
    case hosted(RulesRequest, LookupMocks)
    /// Requests a file.
    case file(FileTestRequest)
  }

  /// The title of the case.
  package var name: String
  /// The 1-based line of the case in the test file.
  package var fileLine: Int
  /// The caller, or `nil` without credentials.
  package var auth: RulesAuth?
  /// `request.time`.
  package var time: Timestamp
  package var operation: Operation
  /// The documents that differ from those of the suite.
  package var documents: TestDocuments.Changes = [:]
  /// Whether the rules should allow the request.
  package var expectsAllow: Bool
  /// The 1-based line of the `allow` statement that should allow the request, or be among those that deny it; `nil`
  /// for any.
  package var expectedLine: Int?
}

extension RuleTest {
  /// A case without a name that is not in a file. `documents` are all documents that the rules may read.
  package init(
    _ operation: Operation, as auth: RulesAuth?, at time: Timestamp, over documents: TestDocuments.Changes,
    expectsAllow: Bool
  ) {
    self.init(
      name: "", fileLine: 0, auth: auth, time: time, operation: operation, documents: documents,
      expectsAllow: expectsAllow)
  }
}

/// A pipeline, as far as rules see it.
package struct TestPipeline: Sendable {
  /// A read that rules decide about by itself.
  package enum Read: Sendable {
    /// Reads a document by name.
    case get(DocumentKey)
    /// Reads all documents that meet the conditions of a source.
    case list(Query)
  }

  /// The pipeline in its notation.
  package var text: String
  /// The reads of all sources. The rules must allow each.
  package var reads: [Read]
  /// The reason why the pipeline is denied regardless of the rules, or `nil`.
  package var refusal: String?
}

/// A write of a commit.
package struct TestWrite: Sendable {
  /// The kind of a write.
  package enum Kind: String, Sendable, CaseIterable {
    /// Creates a document that does not exist.
    case create
    /// Creates or replaces a document.
    case set
    /// Changes fields of an existing document.
    case update
    /// Deletes a document.
    case delete
  }

  package var kind: Kind
  package var key: DocumentKey
  package var data = MapValue()
  /// The paths of ``data`` to write, or `nil` to replace the whole document.
  package var mask: [FieldPath]?
  /// The field transforms. They are applied in order, after the other fields are written.
  package var transforms: [FieldTransform] = []

  /// A write without fields.
  package init(_ kind: Kind, _ key: DocumentKey) {
    self.kind = kind
    self.key = key
  }
}

/// The cases of a test file, with their rules and documents.
package struct RuleTestSuite: Sendable {
  /// The path of the test file, as the caller gave it.
  package var file: String
  /// The path of the rules. If the test file contains them, the path of the test file.
  package var rulesFile: String
  package var rules: String
  /// The service of the rules: that of files if the text has rules for files only, otherwise Firestore.
  package var service: String { Self.service(of: rules) }
  /// The paths of all files that the suite was read from.
  package var files: [String]
  /// The documents before each case.
  package var documents: TestDocuments
  /// The cases, in the order of the file.
  package var tests: [RuleTest]

  /// The service of rules for files.
  static let filesService = "firebase.storage"

  /// Returns the service for which a text is tested.
  package static func service(of rules: String) -> String {
    let services = Ruleset.services(in: rules)
    return services.contains(filesService) && !services.contains("cloud.firestore") ? filesService : "cloud.firestore"
  }
}
