import HearthServer

/// Checks that the served project is the one whose data the directory contains. In production mode, the server serves
/// one project, so a wrong name shows an empty database.
struct ProjectChecks {
  let configuration: HearthConfiguration
  /// The data directory.
  let directory: String

  func findings() -> [Finding] {
    guard configuration.mode == .production, configuration.loadProjects == nil else { return [] }
    let topic = "project"
    let stored = DataDirectory.projects(in: directory)
    guard let project = configuration.project else {
      if stored.count == 1 { return [.ok(topic, "\(stored[0]), the only project of \(directory)")] }
      return [
        .problem(
          topic, "no project is set, so the server does not start",
          "Add --project ID\(stored.isEmpty ? "" : ", one of \(stored.joined(separator: ", "))").")
      ]
    }
    if stored.isEmpty || stored.contains(project) { return [.ok(topic, project)] }
    let others = stored.joined(separator: ", ")
    return [
      .warning(
        topic, "the server serves project \(project), but \(directory) contains data of \(others)",
        "Correct the project, in hearth.json or with --project, or name another data directory.")
    ]
  }
}
