package import DatabaseService
package import DocumentModel
package import RulesTesting

/// Records the decisions of a server as cases of a rules test.
///
/// The code that makes a decision reports it to this observer, with copies of the documents that the rules read. So
/// requests of parallel tests do not mix, and no request is sent again. See ``DatabaseService/AccessObserver``.
/// Requests that no rules decide, such as those of administrators, make no case.
package final class CaseRecorder: AccessObserver {
  /// The recorded cases.
  package let recording = CaseRecording()

  /// A recorder without cases.
  package init() {}

  /// Ends the current test of a project, or with `nil` of all projects.
  package func noteSetup(of database: DatabaseID?) { recording.noteSetup(of: database?.project) }

  /// Adds the cases of a decision to ``recording``.
  package func note(_ record: AccessRecord) {
    let cases = record.cases
    if let database = record.database ?? DatabaseID(project: "demo") {
      for test in cases.tests { recording.add(test, by: record.ruleset, in: database) }
    }
    if let key = cases.undecodable {
      let project = record.database?.project ?? ""
      recording.addInexpressible("a write cannot be decoded", "write \(key.path.text)", in: project)
    }
  }
}
