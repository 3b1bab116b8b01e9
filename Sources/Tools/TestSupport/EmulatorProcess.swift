import Foundation
import Glibc

/// The official Firestore emulator, the reference for differential tests. It is not installed on every machine.
package struct EmulatorProcess: Sendable {
  package let process: ServerProcess
  package let port: UInt16

  private static let java = "/usr/bin/java"
  private static let jar =
    "/usr/lib/google-cloud-sdk/platform/cloud-firestore-emulator/cloud-firestore-emulator.jar"

  /// Whether Java and the emulator are installed where their Debian packages put them.
  package static var isInstalled: Bool { access(java, X_OK) == 0 && access(jar, R_OK) == 0 }

  /// Starts the emulator on a free loopback port and waits until it responds, about eight seconds.
  /// - Throws: ``ServerProcessError`` if it does not start or respond in time.
  package init(timeoutSeconds: Double = 60) throws {
    // The emulator cannot choose a port itself, so it gets one that was free a moment ago.
    let (socket, port) = try LoopbackAddress.bind()
    close(socket)
    self.port = port
    process = try ServerProcess(
      executable: Self.java,
      arguments: [
        "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m", "-cp", Self.jar,
        "com.google.cloud.datastore.emulator.firestore.CloudFirestore", "--host=127.0.0.1", "--port=\(port)",
      ])
    _ = try process.waitForLine(prefix: "API endpoint: ", timeoutSeconds: timeoutSeconds)
    let client = TestHTTPClient(port: port)
    let responds = OtherProcess.eventually(secondsMax: timeoutSeconds) {
      (try? client.send("GET", "/"))?.status == 200
    }
    guard responds else {
      process.stop()
      throw ServerProcessError(description: "the emulator does not respond:\n\(process.output)")
    }
  }
}
