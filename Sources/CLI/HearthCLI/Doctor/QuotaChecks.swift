import Basics
import HearthServer

/// Checks how much of its quotas a project has used.
struct QuotaChecks {
  let configuration: HearthConfiguration
  let project: String
  /// The owner of the project's files; `nil` for the project that has the directory's own files.
  let filesOwner: String?
  let directory: String

  /// The part of a quota above which there is a warning, in percent.
  private static let percentMax = 90

  func findings() -> [Finding] {
    let topic = "quota"
    do {
      let use = try QuotaUse(configuration.quotas, of: project, filesOwner: filesOwner, in: directory)
      return use.rows.map { row in
        guard row.percent >= Self.percentMax else { return .ok(topic, row.text) }
        return .warning(
          topic, row.text, "Delete what is not needed, or raise \(row.kind.option): beyond it, writes that add fail.")
      }
    } catch {
      return [.warning(topic, "cannot be read: \(CommandFailure(error).message)", "Run hearth check \(directory).")]
    }
  }
}
