import Glibc

/// The official emulator, a Java program that stores everything in memory.
final class EmulatorPeer: DocumentServer {
  static let name = "official emulator"
  static var obstacle: String? {
    guard access(jar, R_OK) == 0 else {
      return "the official emulator is not installed (google-cloud-cli-firestore-emulator)"
    }
    return findProgram("java") != nil ? nil : "java is not installed, which the official emulator needs"
  }

  let port: Int
  let process: ChildProcess
  let secondsToFirstAnswer: Double

  private static let jar = "/usr/lib/google-cloud-sdk/platform/cloud-firestore-emulator/cloud-firestore-emulator.jar"
  private static let documents = "/v1/projects/bench/databases/(default)/documents"

  init() throws {
    let port = try LoadClient.freePort()
    let launch = try Launch(
      port: port, readyPath: "/",
      [
        "java", "-cp", Self.jar, "com.google.cloud.datastore.emulator.firestore.CloudFirestore", "--host", "127.0.0.1",
        "--port", "\(port)",
      ])
    (self.port, process, secondsToFirstAnswer) = (port, launch.process, launch.seconds)
  }

  func storeSample() throws -> String {
    let reply = try LoadClient.send(
      "POST", port: port, "\(Self.documents)/tasks?documentId=sample", body: Sample.firestoreJSON)
    guard reply.status == 200 else { throw BenchmarkError("the emulator refused the sample: \(reply.body)") }
    return "\(Self.documents)/tasks/sample"
  }

  func creation() -> (target: String, body: String) {
    ("\(Self.documents)/tasks", Sample.firestoreJSON)
  }
}
