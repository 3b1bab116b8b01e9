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
    port = try Self.freePort()
    process = try ServerProcess(
      executable: Self.java,
      arguments: [
        "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m", "-cp", Self.jar,
        "com.google.cloud.datastore.emulator.firestore.CloudFirestore", "--host=127.0.0.1", "--port=\(port)",
      ])
    _ = try process.waitForLine(prefix: "API endpoint: ", timeoutSeconds: timeoutSeconds)
    let deadline = Date(timeIntervalSinceNow: timeoutSeconds)
    let client = TestHTTPClient(port: port)
    while (try? client.send("GET", "/"))?.status != 200 {
      guard Date() < deadline else {
        process.stop()
        throw ServerProcessError(description: "the emulator does not respond:\n\(process.output)")
      }
      usleep(20_000)
    }
  }

  /// Returns a port that was free a moment ago, because the emulator cannot choose one itself.
  private static func freePort() throws -> UInt16 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { _ = Glibc.close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) | getsockname(descriptor, $0, &length)
      }
    }
    guard result == 0 else { throw ServerProcessError(description: "no free port: errno \(errno)") }
    return UInt16(bigEndian: address.sin_port)
  }
}
