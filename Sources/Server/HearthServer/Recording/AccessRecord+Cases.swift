import DatabaseService
import DocumentModel
import DocumentStore
import RulesEngine
import RulesTesting
import WireFormat

extension AccessRecord {
  /// The record as cases of a rules test.
  struct Cases {
    /// One case for a get, a query, a listener, a commit and a file. A commit that verifies documents, as client
    /// transactions do, also has a case for each verified document: its get.
    var tests: [RuleTest] = []
    /// The document whose write cannot be decoded, if one exists. Then the commit has no case.
    var undecodable: DocumentKey?
  }

  /// The cases of the record. Cost: decodes the writes of a commit.
  var cases: Cases {
    var documents: TestDocuments.Changes = [:]
    for lookup in lookups { documents.updateValue(lookup.fields, forKey: lookup.path) }
    var cases = Cases()
    switch request {
    case .get(let key, let fields):
      documents.updateValue(fields, forKey: key.path)
      cases.tests = [test(.get(key), over: documents)]
    case .list(var query):
      // The proof does not depend on these.
      (query.start, query.end, query.projection, query.findNearest) = (nil, nil, nil, nil)
      cases.tests = [test(.list(query), over: documents)]
    case .commit(let changes, let denied):
      for change in changes { documents.updateValue(change.before, forKey: change.key.path) }
      addCommit(changes, denied: denied, over: documents, to: &cases)
    case .file(let request):
      var file = FileTestRequest([request.method], bucket: request.bucket, name: request.name)
      (file.before, file.after) = (request.resource, request.newResource)
      cases.tests = [test(.file(file), over: documents)]
    }
    return cases
  }

  private func addCommit(
    _ changes: [ProposedDocument], denied: (key: DocumentKey, method: RulesMethod)?,
    over documents: TestDocuments.Changes, to cases: inout Cases
  ) {
    var writes: [TestWrite] = []
    for change in changes {
      if change.writes.contains(where: { $0.operation == .verify }) {
        let isDenied = denied.map { $0.key == change.key && $0.method == .get } ?? false
        cases.tests.append(test(.get(change.key), over: documents, isAllowed: !isDenied))
        // The rest of the commit was not decided.
        if isDenied { return }
      }
      do throws(WireError) {
        for write in change.writes where write.operation != .verify {
          writes.append(try TestWrite(write, exists: change.before != nil))
        }
      } catch { return cases.undecodable = change.key }
    }
    if !writes.isEmpty { cases.tests.append(test(.commit(writes), over: documents, isAllowed: denied == nil)) }
  }

  private func test(
    _ operation: RuleTest.Operation, over documents: TestDocuments.Changes, isAllowed: Bool? = nil
  ) -> RuleTest {
    RuleTest(operation, as: auth, at: time, over: documents, expectsAllow: isAllowed ?? self.isAllowed)
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
