import Foundation
import Glibc
import Testing
import TestSupport

/// `hearth compact` replaces files that others own or still read.
@Suite(.needs(.hearth)) struct CompactTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func run(_ words: String...) throws -> String {
    let result = try HearthBinary.run(words)
    #expect(result.exit == .code(0), "hearth \(words.joined(separator: " ")): \(result.output)")
    return result.output
  }

  @Test(.needs(.root)) func theOwnerOfFilesStays() throws {
    let data = directory.file("data")
    _ = try run("import", Fixtures.path("journeys"), "--data", data, "--project", "demo")
    let database = "\(data)/databases/demo/(default)"
    for name in ["", "/data.mdb", "/data.mdb-lock"] { chown(database + name, 65_534, 65_534) }
    _ = try run("compact", "--data", data)
    for name in ["/data.mdb", "/data.mdb-lock"] {
      var status = stat()
      #expect(stat(database + name, &status) == 0 && status.st_uid == 65_534 && status.st_gid == 65_534, "\(name)")
    }
    #expect(try run("check", data).contains("ok"))
  }
}
