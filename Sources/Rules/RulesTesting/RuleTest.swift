package import DocumentModel
package import RulesEngine

/// One case: a request, and what the rules should say to it.
package struct RuleTest: Sendable {
  /// What is asked for.
  package enum Operation: Sendable {
    /// Reads a document.
    case get(DocumentKey)
    /// Runs a query.
    case list(Query)
    /// Writes documents, all or none.
    case commit([TestWrite])
    /// One request as the hosted test API describes it, with its document, and with the lookups that it mocks.
    case hosted(RulesRequest, LookupMocks)
    /// Asks for a file.
    case file(FileTestRequest)
  }

  /// What it shows, in words.
  package var name: String
  /// The 1-based line of the test file where it stands.
  package var fileLine: Int
  /// Who asks.
  package var auth: RulesAuth?
  /// `request.time`.
  package var time: Timestamp
  /// What is asked for.
  package var operation: Operation
  /// Whether the rules should allow it.
  package var expectsAllow: Bool
  /// The 1-based line of the `allow` that should grant it, or be among those that refuse it; `nil` for any.
  package var expectedLine: Int?
}

/// A write of a case.
package struct TestWrite: Sendable {
  /// What becomes of the document.
  package enum Kind: String, Sendable, CaseIterable {
    /// Makes a document that is not there.
    case create
    /// Replaces a document or makes it.
    case set
    /// Changes fields of a document.
    case update
    /// Removes a document.
    case delete
  }

  /// What becomes of the document.
  package var kind: Kind
  /// Which document.
  package var key: DocumentKey
  /// The fields.
  package var data = MapValue()
  /// Which paths of ``data`` count; all others stay as they are. `nil` for the whole document.
  package var mask: [FieldPath]?
  /// Applied afterwards, in order.
  package var transforms: [FieldTransform] = []
}

/// The cases of one file with their rules and documents.
package struct RuleTestSuite: Sendable {
  /// The path of the file with the cases, as it was given.
  package var file: String
  /// The path of the rules; where they stand in the file of the cases, that one's.
  package var rulesFile: String
  /// The text of the rules.
  package var rules: String
  /// The service whose rules are meant: that of files where the text has rules for no other.
  package var service: String { Self.service(of: rules) }
  /// The files that all this was read from.
  package var files: [String]
  /// What is stored before each case.
  package var documents: TestDocuments
  /// In the order of the file.
  package var tests: [RuleTest]

  /// The service of rules for files.
  static let filesService = "firebase.storage"

  /// The service whose rules a text is tested for.
  package static func service(of rules: String) -> String {
    let services = Ruleset.services(in: rules)
    return services.contains(filesService) && !services.contains("cloud.firestore") ? filesService : "cloud.firestore"
  }
}
