import Foundation
import Glibc
import PostgresEngine
import Testing
import TestSupport

/// The forms of a cluster's small texts: its key file, its configuration and its URL.
@Suite struct ClusterFilesTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  // MARK: The key file

  @Test func aKeyFileIsReadBackAndNeverReplaced() throws {
    let path = directory.file("cluster.key")
    let key = ClusterKey()
    try key.write(to: path)
    let read = try ClusterKey.read(path)
    #expect(read.key == key && read.path == path)
    #expect(throws: ClusterKeyFailure.exists(path)) { try ClusterKey().write(to: path) }
    var status = stat()
    #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    #expect(try directory.text("cluster.key").hasPrefix("hearth cluster key 1\n"))
    #expect(try key.check() == ClusterKey(key.bytes)?.check())
    #expect(try key.check() != ClusterKey().check())
  }

  @Test func wrongKeyFilesAreRefused() throws {
    let digits = String(repeating: "ab", count: 32)
    func failure(_ text: String, mode: mode_t = 0o600) throws -> ClusterKeyFailure? {
      let path = try directory.write("key", text)
      chmod(path, mode)
      do throws(ClusterKeyFailure) { _ = try ClusterKey.read(path) } catch { return error }
      return nil
    }
    let path = directory.file("key")
    #expect(try failure("hearth cluster key 1\n\(digits)\n") == nil)
    #expect(try failure("hearth cluster key 1\r\n\(digits)") == nil)
    #expect(try failure("hearth cluster key 1\n\(digits)\n", mode: 0o640) == .exposed(path))
    #expect(try failure("hearth cluster key 1\n\(digits)\n", mode: 0o604) == .exposed(path))
    #expect(try failure("hearth cluster key 1\nabab\n") == .wrongLength(path, 2))
    #expect(try failure("hearth cluster key 1\n\(digits)ab\n") == .wrongLength(path, 33))
    for text in ["", digits, "hearth cluster key 2\n\(digits)", "hearth cluster key 1\nxx\n", "hearth cluster key 1\n"]
    {
      #expect(try failure(text) == .notAKey(path), "\(text)")
    }
    #expect(try failure(String(repeating: "a\n", count: 5000)) == .notAKey(path))
    let missing = directory.file("missing")
    #expect(throws: ClusterKeyFailure.missing([missing])) { try ClusterKey.read(missing) }
    #expect(throws: ClusterKeyFailure.notAKey(directory.path)) {
      chmod(directory.path, 0o700)
      return try ClusterKey.read(directory.path)
    }
  }

  // MARK: The configuration

  @Test func aConfigurationIsDecodedAndDamageIsNoticed() throws {
    var configuration = ClusterConfiguration()
    #expect(ClusterConfiguration(encoded: try #require(configuration.encoded())) == configuration)
    configuration.set(.init(.storageRules, text: Array("files".utf8)))
    configuration.set(.init(.rules, database: "archive", text: []))
    configuration.set(.init(.rules, text: Array("old".utf8)))
    configuration.set(.init(.rules, text: Array("new".utf8)))
    configuration.set(.init(.indexes, database: "(default)", text: Array("{}".utf8)))
    #expect(configuration.parts.map(\.database) == ["", "archive", "(default)", ""])
    #expect(configuration.text(.rules) == Array("new".utf8))
    let bytes = try #require(configuration.encoded())
    #expect(ClusterConfiguration(encoded: bytes) == configuration)
    for place in bytes.indices {
      var damaged = bytes
      damaged[place] ^= 1
      #expect(ClusterConfiguration(encoded: damaged) == nil)
      #expect(ClusterConfiguration(encoded: Array(bytes[..<place])) == nil)
    }
    configuration.set(.init(.rules, text: [UInt8](repeating: 32, count: ClusterConfiguration.bytesMax)))
    #expect(configuration.encoded() == nil)
  }

  // MARK: The URL

  @Test(arguments: [
    ("postgres://u@h/d", "postgres://u@h/d"),
    ("postgres://u:secret@h1,h2:5433/d?sslmode=require", "postgres://u@h1,h2:5433/d?sslmode=require"),
    ("postgresql://u:se:c%40ret@h/d", "postgresql://u@h/d"),
    ("postgres://h/d?password=secret&user=u&sslpassword=secret", "postgres://h/d?user=u"),
    ("postgres://h/d?passw%6Frd=secret", "postgres://h/d"),
    ("postgres://u:se/cr?et@h/d", "postgres://…"),
    ("postgres://u:se@cret@h/d", "postgres://…"),
    ("postgres://u@h/d?password=se@cret", "postgres://…"),
    ("postgres://h/d?host=/run", "postgres://h/d?host=/run"),
    ("host=h password=secret", "postgres://…"),
  ])
  func passwordsAreRemoved(url: String, expected: String) {
    #expect(PostgresURL.withoutPassword(url) == expected)
    #expect(PostgresURL.hasPassword(url) == (url != expected))
  }
}
