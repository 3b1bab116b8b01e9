package import DocumentModel
import DocumentStore
import KeyValue
package import RulesEngine
import Synchronization
import WireFormat

/// The ruleset that guards files, which may be replaced while requests are judged by it.
///
/// What was uploaded stands above what came from a file.
package final class FileRules: Sendable {
  /// The name of the service in rules.
  package static let service = "firebase.storage"
  /// What is known of a file only when all of it has come.
  package static let lateFields = ["md5Hash", "crc32c", "etag", "generation"]

  private struct State {
    var file: ActiveRuleset?
    var upload: ActiveRuleset?
  }

  private let state = Mutex(State())

  /// No rules yet.
  package init() {}

  /// The rules that another one holds now.
  package init(copying other: FileRules) {
    let copy = other.state.withLock { $0 }
    state.withLock { $0 = copy }
  }

  /// Sets the rules from a file.
  package func set(_ ruleset: Ruleset) { state.withLock { $0.file = ActiveRuleset(ruleset) } }

  /// Sets the rules over those from a file.
  package func upload(_ ruleset: Ruleset) { state.withLock { $0.upload = ActiveRuleset(ruleset) } }

  /// The rules in force; `nil` where there are none.
  package var inForce: ActiveRuleset? { state.withLock { $0.upload ?? $0.file } }
}

/// A request for a file, as rules see it.
package struct FileRequest: Sendable {
  /// What is done.
  package var method: RulesMethod
  /// The bucket.
  package var bucket: String
  /// The object's name, or for a list the prefix without its last slash.
  package var name: String
  /// Who asks.
  package var auth: RulesAuth?
  /// The object as it is; `nil` for none.
  package var resource: MapValue?
  /// The object as it will be; `nil` for none.
  package var newResource: MapValue?

  /// Describes a request that knows no object.
  package init(_ method: RulesMethod, bucket: String, name: String, auth: RulesAuth?) {
    self.method = method
    self.bucket = bucket
    self.name = name
    self.auth = auth
  }
}

extension FirestoreService {
  /// Judges a request for a file. `firestore.get()` reads one snapshot of the documents in `database`, whatever the
  /// number of lookups; where that database is not there they fail.
  package func allows(_ request: FileRequest, by guarding: ActiveRuleset, documentsIn database: DatabaseID?) -> Bool {
    decide(request, guarding, documentsIn: database, .none)?.isAllowed ?? false
  }

  /// What rules say of an upload whose ``FileRules/lateFields`` are not known, and not in the request: `nil` where that
  /// depends on them. Cost: traces the decision.
  package func allowsEarly(
    _ request: FileRequest, by guarding: ActiveRuleset, documentsIn database: DatabaseID?
  ) -> Bool? {
    guard let decision = decide(request, guarding, documentsIn: database, .trace) else { return false }
    if decision.isAllowed { return true }
    // `&&` and `||` take an error for a value that may be either: only who reads such a field does not know.
    let isOpen = guarding.quotesChecksums
      ? !decision.trace.isEmpty
      : decision.trace.contains { value in
        FileRules.lateFields.contains { value.value.utf8.elementsEqual(Self.missing($0).utf8) }
      }
    return isOpen ? nil : false
  }

  /// How a trace shows that a field is not there.
  private static func missing(_ field: String) -> String {
    #"{"undefined":{"causeMessage":"Property \#(field) is undefined on object."}}"#
  }

  private func decide(
    _ request: FileRequest, _ guarding: ActiveRuleset, documentsIn database: DatabaseID?,
    _ explaining: Decision.Explanation
  ) -> Decision? {
    // Opening a database for rules that read none would be in vain.
    guard guarding.readsDocuments, let id = database, let database = try? self.database(id) else {
      return decide(request, guarding, nil, explaining)
    }
    return try? database.read { reader in
      decide(request, guarding, reader.snapshot, explaining)
    }
  }

  private func decide(
    _ request: FileRequest, _ guarding: ActiveRuleset, _ snapshot: (any KeyValueSnapshot)?,
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
              borrowed.lookupsMax = RulesRequest.lookupsMaxOfFile
              return evaluation.evaluator.decide(
                guarding.ruleset, borrowed, lookups: evaluation.lookups, explaining: explaining)
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
