package import DocumentModel
import DocumentStore
import KeyValue
package import RulesEngine
import Synchronization
import WireFormat

/// The active ruleset for files, which may be replaced while requests are evaluated.
///
/// Uploaded rules override those from a file.
package final class FileRules: Sendable {
  /// The name of the service in rules.
  package static let service = "firebase.storage"
  /// The fields of a file that are known only after the whole file has arrived.
  package static let lateFields = ["md5Hash", "crc32c", "etag", "generation"]

  private struct State {
    var file: ActiveRuleset?
    var upload: ActiveRuleset?
  }

  private let state = Mutex(State())

  package init() {}

  /// Copies the current rules of another object.
  package init(copying other: FileRules) {
    let copy = other.state.withLock { $0 }
    state.withLock { $0 = copy }
  }

  /// Sets the rules from a file.
  package func set(_ ruleset: Ruleset) { state.withLock { $0.file = ActiveRuleset(ruleset) } }

  /// Sets uploaded rules, which override those from a file.
  package func upload(_ ruleset: Ruleset) { state.withLock { $0.upload = ActiveRuleset(ruleset) } }

  /// The active rules, or `nil` if no rules are set.
  package var active: ActiveRuleset? { state.withLock { $0.upload ?? $0.file } }
}

/// A request for a file, as rules see it.
package struct FileRequest: Sendable {
  package var method: RulesMethod
  package var bucket: String
  /// The name of the object. For a list: the prefix without its last slash.
  package var name: String
  /// The caller; `nil` if unauthenticated.
  package var auth: RulesAuth?
  /// The existing object, or `nil` if none exists.
  package var resource: MapValue?
  /// The object after the request, or `nil` if none exists.
  package var newResource: MapValue?

  /// Describes a request without existing or new objects.
  package init(_ method: RulesMethod, bucket: String, name: String, auth: RulesAuth?) {
    self.method = method
    self.bucket = bucket
    self.name = name
    self.auth = auth
  }
}

extension FirestoreService {
  /// Evaluates a request for a file. `firestore.get()` reads one snapshot of `database`, regardless of the number of
  /// lookups. Lookups fail if that database does not exist.
  package func allows(_ request: FileRequest, by activeRuleset: ActiveRuleset, documentsIn database: DatabaseID?)
    -> Bool
  {
    decide(request, activeRuleset, documentsIn: database, .none)?.isAllowed ?? false
  }

  /// Evaluates an upload before its ``FileRules/lateFields`` are known. Returns `nil` if the decision depends on
  /// them. Cost: traces the decision.
  package func allowsEarly(
    _ request: FileRequest, by activeRuleset: ActiveRuleset, documentsIn database: DatabaseID?
  ) -> Bool? {
    guard let decision = decide(request, activeRuleset, documentsIn: database, .trace) else { return false }
    if decision.isAllowed { return true }
    // `&&` and `||` treat an error as an unknown value. The decision is open only if the rules have read such a
    // field.
    let isOpen =
      activeRuleset.quotesChecksums
      ? !decision.trace.isEmpty
      : decision.trace.contains { value in
        FileRules.lateFields.contains { value.value.utf8.elementsEqual(Self.missing($0).utf8) }
      }
    return isOpen ? nil : false
  }

  /// The value of a missing field in a trace.
  private static func missing(_ field: String) -> String {
    #"{"undefined":{"causeMessage":"Property \#(field) is undefined on object."}}"#
  }

  private func decide(
    _ request: FileRequest, _ activeRuleset: ActiveRuleset, documentsIn database: DatabaseID?,
    _ explaining: Decision.Explanation
  ) -> Decision? {
    // Do not open a database for rules that read no documents.
    guard activeRuleset.readsDocuments, let id = database, let database = try? self.database(id) else {
      return decide(request, activeRuleset, nil, explaining)
    }
    return try? database.read { reader in
      decide(request, activeRuleset, reader.snapshot, explaining)
    }
  }

  private func decide(
    _ request: FileRequest, _ activeRuleset: ActiveRuleset, _ snapshot: (any KeyValueSnapshot)?,
    _ explaining: Decision.Explanation
  ) -> Decision {
    let evaluation = evaluations.take()
    defer { evaluations.give(evaluation) }
    if let snapshot { evaluation.documents.begin(snapshot) }
    let time = Timestamp(uncheckedMicroseconds: databases.clock.now())
    let before = request.resource.map { EncodedFields($0).bytes }
    let after = request.newResource.map { EncodedFields($0).bytes }
    let decision = BorrowedRulesRequest.with(
      request.method, ResourcePath.root, database: DatabaseID.defaultDatabase, auth: request.auth, time: time
    ) { borrowed in
      Self.withBytes(Array(request.bucket.utf8)) { bucket in
        Self.withBytes(Array(request.name.utf8)) { name in
          Self.withBytes(before) { before in
            Self.withBytes(after) { after in
              var borrowed = borrowed
              borrowed.bucket = bucket
              if let name { borrowed.path = name }
              borrowed.resource = before
              borrowed.newResource = after
              borrowed.lookupsMax = RulesRequest.lookupsMaxPerFile
              return evaluation.evaluator.decide(
                activeRuleset.ruleset, borrowed, lookups: evaluation.lookups, explaining: explaining)
            }
          }
        }
      }
    }
    evaluations.counters.add(to: decision.isAllowed ? .rulesAllowed : .rulesDenied)
    return decision
  }

  private static func withBytes<R>(_ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) -> R) -> R {
    guard let bytes else { return body(nil) }
    return bytes.withUnsafeBytes { body($0) }
  }
}
