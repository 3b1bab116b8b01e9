import ContentSharing
import Foundation
import PostgresEngine
import Synchronization
import Testing
import TestSupport

/// Shared content in a real PostgreSQL.
@Suite(.needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct PostgresContentTests {
  private let server: PostgresServer
  private let directory: TemporaryDirectory

  init() throws {
    server = try PostgresServer()
    directory = try TemporaryDirectory()
  }

  @Test func itIsASharedPlace() throws {
    let url = try server.makeDatabase("files")
    try SharedPlace(content: PostgresContent(url), directory: directory).check()
  }

  @Test func nodesThatBeginTogetherAgree() throws {
    let url = try server.makeDatabase("files")
    let found = Mutex<[String]>([])
    let done = Observed(0)
    for number in 1...6 {
      Thread {
        let answer: String
        do { answer = "\(try PostgresContent(url).identity(claiming: UInt64(number)) ?? 0)" } catch {
          answer = "\(error)"
        }
        found.withLock { $0.append(answer) }
        done.update { $0 += 1 }
      }.start()
    }
    #expect(done.wait { $0 == 6 })
    #expect(Set(found.withLock { $0 }).count == 1, "\(found.withLock { $0 })")
  }

  /// PostgreSQL ends each transaction that writes twice in favor of others.
  @Test func transactionsThatConflictAreRepeated() throws {
    let url = try server.makeDatabase("files")
    let place = SharedPlace(content: try PostgresContent(url), directory: directory)
    _ = try place.content.identity(claiming: 1)
    let tables = try server.sql(
      "SELECT string_agg(tablename, ',') FROM pg_tables WHERE schemaname = 'public'", in: "files")
    try server.addConflicts(to: tables.split(separator: ",").map(String.init), in: "files")
    let bytes = [UInt8](repeating: 7, count: 3 << 20)
    let (path, digest) = try place.file(bytes)
    let copy = SharedCopy(of: digest)
    try place.content.publish(copy, fromFile: path, size: bytes.count)
    #expect(try place.content.copies(of: digest) == [copy])
    #expect(try place.bytes(of: copy) == bytes)
    try place.content.remove(copy)
    #expect(try place.content.copies(of: digest) == [])
    #expect(try server.attempts(in: "files") >= 12)
  }

  @Test func aKilledPublicationIsNeverWhole() throws {
    let url = try server.makeDatabase("files")
    let place = SharedPlace(content: try PostgresContent(url), directory: directory)
    _ = try place.content.identity(claiming: 1)
    let (path, digest) = try place.file([UInt8](repeating: 7, count: 3 << 20))
    let copy = SharedCopy(of: digest)
    // The second of three parts is lost before the last statement.
    try server.sql(
      """
      CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN IF NEW.part = 1 THEN RETURN NULL; END IF; RETURN NEW; END $$;
      CREATE TRIGGER lose BEFORE INSERT ON hearth_blob FOR EACH ROW EXECUTE FUNCTION lose();
      """, in: "files")
    #expect(throws: SharedContentError.self) { try place.content.publish(copy, fromFile: path, size: 3 << 20) }
    #expect(try place.content.copies(of: digest) == [])
    #expect(try place.bytes(of: copy) == nil)
    #expect(try server.sql("SELECT count(*) FROM hearth_blob", in: "files") == "2")
    try place.content.removeLeftovers()
    #expect(try server.sql("SELECT count(*) FROM hearth_blob", in: "files") == "2")
    try server.sql("UPDATE hearth_blob SET added = added - 90000", in: "files")
    try place.content.removeLeftovers()
    #expect(try server.sql("SELECT count(*) FROM hearth_blob", in: "files") == "0")
  }

  @Test func largeFilesAreRefused() throws {
    let content = try PostgresContent(server.makeDatabase("files"), bytesMax: 10)
    let (path, digest) = try SharedPlace(content: content, directory: directory).file([UInt8](repeating: 1, count: 11))
    #expect(throws: SharedContentError.tooLarge(bytesMax: 10)) {
      try content.publish(SharedCopy(of: digest), fromFile: path, size: 11)
    }
    #expect(try PostgresContent("postgres://h/d").bytesMax == 256 << 20)
  }

  @Test func aServerThatIsDownIsUnavailable() throws {
    let content = try PostgresContent("postgres://hearth@/files?host=\(directory.path)")
    let error = #expect(throws: SharedContentError.self) { try content.identity(claiming: 1) }
    guard case .unavailable = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }
}
