import Glibc
import HearthServer

/// Checks the folders and the rules of the web apps.
struct HostingChecks {
  let configuration: HearthConfiguration

  func findings() -> [Finding] { configuration.hosting.flatMap(findings) }

  private func findings(_ hosted: HearthConfiguration.HostedSite) -> [Finding] {
    let topic = "hosting"
    let folder: HostedFolder
    do throws(HearthError) { folder = try configuration.folder(of: hosted) } catch {
      return [.problem(topic, error.description, "Correct it: the server does not start with it.")]
    }
    var findings = folder.problems.map { problem in
      Finding.warning(
        topic, "\(hosted.path): \(problem.key): \(problem.text)", "Correct the rule: it is not in force.")
    }
    guard access(folder.path, R_OK | X_OK) == 0 else {
      let text = "this user cannot read \(folder.path): \(DirectoryChecks.reason())"
      return findings + [.problem(topic, text, "Let the user of the server read the folder and its files.")]
    }
    let page = "\(folder.path)/index.html"
    var status = stat()
    if stat(page, &status) != 0 || status.st_mode & S_IFMT != S_IFREG {
      findings.append(
        .warning(
          topic, "\(folder.path) has no index.html, so / responds with 404",
          "Build the app first, or name the folder that contains its index.html."))
    } else if access(page, R_OK) != 0 {
      findings.append(
        .problem(
          topic, "this user cannot read \(page): \(DirectoryChecks.reason())", "Let the user of the server read it."))
    } else if findings.isEmpty {
      findings.append(.ok(topic, "\(folder.path)\(hosted.host.map { ", for \($0)" } ?? "")"))
    }
    return findings
  }
}
