import Testing
import TestSupport

/// `hearth health`.
@Suite(.needs(.hearth)) struct HealthTests {
  @Test func aReadyServerIsReported() throws {
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let words = ["health", "--server", "http://127.0.0.1:\(server.port)"]
    let loud = try HearthBinary.run(words)
    #expect(loud.exit == .code(0) && loud.output == "ready\n")
    let quiet = try HearthBinary.run(words + ["--quiet"])
    #expect(quiet.exit == .code(0) && quiet.output.isEmpty)
  }

  @Test func aServerWithTLSIsReported() throws {
    let authority = try TestAuthority()
    let certificate = try authority.issue(for: "IP:127.0.0.1")
    let server = try HearthProcess(
      arguments: [
        "--emulator", "--in-memory", "--tls-cert", certificate.file, "--tls-key", certificate.keyFile,
      ], usesTLS: true)
    defer { server.process.stop() }
    let words = ["health", "--server", "https://127.0.0.1:\(server.port)"]
    #expect(try HearthBinary.run(words + ["--cacert", authority.file]).output == "ready\n")
    #expect(try HearthBinary.run(words).exit == .code(1))
  }

  @Test func aStoppedServerIsNotReady() throws {
    let server = try HearthProcess.inMemory()
    server.process.stop()
    let (exit, output) = try HearthBinary.run(["health", "--server", "http://127.0.0.1:\(server.port)"])
    #expect(exit == .code(1) && output.contains("cannot connect"), "\(output)")
  }

  @Test func aStatusOtherThan200IsNotReady() throws {
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let proxy = try CuttingProxy(to: server.port, [.answer(503)])
    let words = ["health", "--server", "http://127.0.0.1:\(proxy.port)"]
    let (exit, output) = try HearthBinary.run(words)
    #expect(exit == .code(1) && output.contains("is not ready (503)"), "\(output)")
    #expect(try HearthBinary.run(words).exit == .code(0))
  }
}
