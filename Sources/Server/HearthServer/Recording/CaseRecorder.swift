package import DatabaseService
package import DocumentModel
import DocumentStore
import RulesEngine
package import RulesTesting
import WireFormat

/// Records the decisions of a server as cases of a rules test.
///
/// The code that makes a decision reports it to this observer, with copies of the documents that the rules read. So
/// requests of parallel tests do not mix, and no request is sent again. See ``DatabaseService/AccessObserver``.
/// A get, a query, a listener and a commit are one case each. A commit that verifies documents, as client transactions
/// do, also makes a case of each verified document: its get. Requests that no rules decide, such as those of
/// administrators, make no case.
package final class CaseRecorder: AccessObserver {
  /// The recorded cases.
  package let recording = CaseRecording()

  /// A recorder without cases.
  package init() {}

  /// Ends the current test of a project, or with `nil` of all projects.
  package func noteSetup(of database: DatabaseID?) { recording.noteSetup(of: database?.project) }

  /// Adds the cases of a decision to ``recording``.
  package func note(_ record: AccessRecord) {
    var documents: TestDocuments.Changes = [:]
    for lookup in record.lookups { documents.updateValue(lookup.fields, forKey: lookup.path) }
    switch record.request {
    case .get(let key, let fields):
      documents.updateValue(fields, forKey: key.path)
      add(.get(key), over: documents, record)
    case .list(var query):
      // The proof does not depend on these.
      (query.start, query.end, query.projection, query.findNearest) = (nil, nil, nil, nil)
      add(.list(query), over: documents, record)
    case .commit(let changes, let denied):
      for change in changes { documents.updateValue(change.before, forKey: change.key.path) }
      addCommit(changes, denied: denied, over: documents, record)
    case .file(let request):
      var file = FileTestRequest([request.method], bucket: request.bucket, name: request.name)
      (file.before, file.after) = (request.resource, request.newResource)
      add(.file(file), over: documents, record)
    }
  }

  private func addCommit(
    _ changes: [ProposedDocument], denied: (key: DocumentKey, method: RulesMethod)?,
    over documents: TestDocuments.Changes, _ record: AccessRecord
  ) {
    var writes: [TestWrite] = []
    for change in changes {
      if change.writes.contains(where: { $0.operation == .verify }) {
        let isDenied = denied.map { $0.key == change.key && $0.method == .get } ?? false
        add(.get(change.key), over: documents, record, isAllowed: !isDenied)
        // The rest of the commit was not decided.
        if isDenied { return }
      }
      do throws(WireError) {
        for write in change.writes where write.operation != .verify {
          writes.append(try TestWrite(write, exists: change.before != nil))
        }
      } catch {
        let project = record.database?.project ?? ""
        return recording.addInexpressible("a write cannot be decoded", "write \(change.key.path.text)", in: project)
      }
    }
    if !writes.isEmpty { add(.commit(writes), over: documents, record, isAllowed: denied == nil) }
  }

  private func add(
    _ operation: RuleTest.Operation, over documents: TestDocuments.Changes, _ record: AccessRecord,
    isAllowed: Bool? = nil
  ) {
    let test = RuleTest(
      operation, as: record.auth, at: record.time, over: documents, expectsAllow: isAllowed ?? record.isAllowed)
    guard let database = record.database ?? DatabaseID(project: "demo") else { return }
    recording.add(test, by: record.ruleset, in: database)
  }
}

extension TestWrite {
  /// A write of a commit as test files describe it. `exists` is whether the document exists before the commit.
  fileprivate init(_ write: Write, exists: Bool) throws(WireError) {
    guard case .update(let fields, let mask) = write.operation else {
      self.init(.delete, write.key)
      return
    }
    let kind: Kind =
      switch write.precondition {
      case .exists(false): .create
      case .exists(true): mask == nil ? .set : .update
      case .updateTime: mask != nil && exists ? .update : .set
      case .none: .set
      }
    self.init(kind, write.key)
    data = try fields.decoded()
    self.mask = mask?.paths
    transforms = write.transforms
  }
}
