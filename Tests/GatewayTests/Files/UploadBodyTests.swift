import Basics
import FileService
import Files
import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing
import WireFormat

@testable import StorageAPI
@testable import Transport

/// The path of an upload from a connection to a disk: over real sockets, with a disk that tests can stop.
@Suite struct UploadBodyTests {
  /// A disk that writes only while its gate is open, and the state of the uploads to it.
  private final class Disk: RequestHandler {
    let directory: TemporaryDirectory
    let contents: ContentDirectory
    let gate: Gate
    let limits: UploadBody.Limits
    let failure: FilesError?
    /// Body bytes received from connections.
    let received = Atomic<Int>(0)
    let interrupted = Atomic<Int>(0)
    let opened = Atomic<Int>(0)

    init(_ limits: UploadBody.Limits = .init(), failure: FilesError? = nil, isOpen: Bool = true) throws {
      directory = try TemporaryDirectory()
      let gate = Gate(isOpen: isOpen)
      self.gate = gate
      contents = try ContentDirectory(directory.path + "/files") { call in
        if call == .write { gate.pass() }
        return 0
      }
      self.limits = limits
      self.failure = failure
    }

    func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
      exchange.respond(status: 404, headers: { _ in }, body: { _ in })
    }

    func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
      let bodyBytes = request.text("content-length").flatMap { Int($0) }
      @Sendable func respond(_ status: Int, _ text: String) {
        exchange.respond(status: status, headers: { _ in }, body: { $0.append(contentsOf: text.utf8) })
      }
      let report: UploadBody.Respond = { result in
        switch result {
        case .success(.stored(let object, _)):
          respond(200, "\(object.content.size) \(Hexadecimal.text(object.content.md5))")
        case .success(.received(let count)): respond(308, "\(count)")
        case .failure(let error): respond(507, "\(error)")
        }
      }
      let upload = Upload(Steps(disk: self))
      let reader = try? request.header("content-type").map { try MultipartReader(contentType: $0) }
      let body =
        if let reader {
          UploadBody(
            exchange, reader, bodyBytes: bodyBytes, limits: limits, begin: { _, _ in upload }, respond: report)
        } else {
          UploadBody(exchange, upload, bodyBytes: bodyBytes, limits: limits, respond: report)
        }
      return Counted(body, self)
    }

    /// The steps of an upload that ends with the checksums of its content.
    private struct Steps: UploadSteps {
      let disk: Disk

      func open() throws(FilesError) -> UploadFile {
        if let failure = disk.failure { throw failure }
        disk.opened.add(1, ordering: .relaxed)
        return UploadFile(incoming: try disk.contents.makeIncoming(FileStore.randomID()))
      }

      func finish(_ file: UploadFile) throws(FilesError) -> UploadResult {
        .stored(
          StoredObject(
            name: ObjectName(bucket: "b", name: "a"), generation: 1, created: 1, updated: 1,
            content: try file.incoming.finish(), attributes: ObjectAttributes()))
      }

      func interrupt(_ file: UploadFile) { disk.interrupted.add(1, ordering: .relaxed) }
    }

    /// Forwards a body and counts its bytes.
    private final class Counted: BodySink {
      let body: UploadBody
      let disk: Disk
      init(_ body: UploadBody, _ disk: Disk) { (self.body, self.disk) = (body, disk) }
      func received(_ bytes: UnsafeRawBufferPointer) {
        disk.received.add(bytes.count, ordering: .relaxed)
        body.received(bytes)
      }
      func ended() { body.ended() }
    }
  }

  /// Lets callers pass while it is open, or after half a minute.
  private final class Gate: Sendable {
    private let isOpen: Atomic<Bool>
    init(isOpen: Bool) { self.isOpen = Atomic(isOpen) }
    func open() { isOpen.store(true, ordering: .releasing) }
    func pass() { for _ in 0..<30_000 where !isOpen.load(ordering: .acquiring) { usleep(1000) } }
  }

  /// A connection that reports how many bytes the server has read.
  private final class Client {
    private let socket: Int32

    init(_ port: Int) throws {
      socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      setTimeouts(of: socket, readSeconds: 60)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = UInt16(port).bigEndian
      address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      let status = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      try #require(status == 0)
    }

    deinit { close(socket) }

    /// Sends until all bytes are sent or the server reads nothing for `waitingSeconds`. Returns how many bytes it
    /// read.
    func send(_ bytes: ArraySlice<UInt8>, waitingSeconds: Int = 60) -> Int {
      setTimeouts(of: socket, writeSeconds: waitingSeconds)
      var sent = 0
      while sent < bytes.count {
        let count = bytes.dropFirst(sent).withUnsafeBytes {
          Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard count > 0 else { break }
        sent += count
      }
      return sent
    }

    func send(_ text: String) { _ = send(Array(text.utf8)[...]) }

    /// Reads until a text arrives or the response ends.
    func read(until text: String) -> String {
      var found: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 4096)
      while !String(decoding: found, as: UTF8.self).contains(text) {
        let count = recv(socket, &buffer, buffer.count, 0)
        guard count > 0 else { break }
        found += buffer[..<count]
      }
      return String(decoding: found, as: UTF8.self)
    }
  }

  private final class Results: Sendable { let all = Mutex<[String]>([]) }

  /// Waits until a condition holds, for at most half a minute. Returns whether it does.
  private func eventually(_ condition: () -> Bool) -> Bool {
    for _ in 0..<30_000 where !condition() { usleep(1000) }
    return condition()
  }

  private func withServer(_ disk: Disk, _ body: (Int) throws -> Void) throws {
    var configuration = TransportConfiguration()
    configuration.port = 0
    configuration.loops = 1
    // A client that gets an early response may continue to send, even slowly.
    configuration.lingerSeconds = 60
    let server = try HTTPServer(configuration: configuration, handler: disk)
    let port = try server.start().port
    defer { server.stop(graceSeconds: 0) }
    try body(port)
  }

  @Test func slowDiskSlowsTheClientDown() throws {
    let disk = try Disk(isOpen: false)
    try withServer(disk) { port in
      let size = 64 << 20
      let body = [UInt8](repeating: 7, count: size)
      let client = try Client(port)
      client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(size)\r\n\r\n")
      // The other bytes are in kernel buffers or were not accepted.
      let taken = client.send(body[...], waitingSeconds: 2)
      #expect(taken < size)
      let limits = UploadBody.Limits()
      #expect(eventually { disk.received.load(ordering: .relaxed) > limits.waitingBytesMax })
      let received = disk.received.load(ordering: .relaxed)
      #expect(received <= limits.waitingBytesMax + limits.pieceBytes + (128 << 10), "\(received)")
      disk.gate.open()
      #expect(client.send(body[taken...]) == size - taken)
      #expect(client.read(until: " ").contains("200 OK"))
    }
    #expect(disk.received.load(ordering: .relaxed) == 64 << 20)
  }

  @Test func failedBodyIsReadToItsEndBeforeTheResponse() throws {
    let disk = try Disk(failure: .full)
    try withServer(disk) { port in
      let size = 12 << 20
      let client = try Client(port)
      client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(size)\r\n\r\n")
      // The server reads the whole body, although the client does not read the response yet.
      #expect(client.send([UInt8](repeating: 7, count: size)[...]) == size)
      #expect(client.read(until: "full").contains("507"))
      #expect(disk.received.load(ordering: .relaxed) == size)
      // The connection stays usable.
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(client.read(until: "404").contains("404"))
    }
  }

  @Test func longFailedBodyGetsItsResponseAtOnce() throws {
    let disk = try Disk(failure: .full)
    try withServer(disk) { port in
      let client = try Client(port)
      client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(DiscardedBody.bytesMax + 1)\r\n\r\n")
      #expect(client.send([UInt8](repeating: 7, count: 1 << 20)[...]) == 1 << 20)
      let reply = client.read(until: "full")
      #expect(reply.contains("507") && reply.contains("Connection: close"))
    }
  }

  @Test func bodyWithoutALengthIsDiscardedUpToALimit() throws {
    let disk = try Disk(failure: .full)
    try withServer(disk) { port in
      let client = try Client(port)
      client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
      let chunk = Array("100000\r\n".utf8) + [UInt8](repeating: 7, count: 1 << 20) + Array("\r\n".utf8)
      var chunks = 0
      while chunks < 64, client.send(chunk[...]) == chunk.count { chunks += 1 }
      #expect(chunks < 64)
      // Until the queue reports the failure, the server buffers the body as usual.
      let limits = UploadBody.Limits()
      let keptMax = limits.waitingBytesMax + limits.pieceBytes + (128 << 10)
      let received = disk.received.load(ordering: .relaxed)
      #expect(received > DiscardedBody.bytesMax && received <= DiscardedBody.bytesMax + keptMax, "\(received)")
    }
  }

  @Test func disconnectedClientLeavesNoFile() throws {
    let disk = try Disk()
    try withServer(disk) { port in
      do {
        let client = try Client(port)
        client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
        _ = client.send([UInt8](repeating: 7, count: 600_000)[...])
        #expect(eventually { disk.received.load(ordering: .relaxed) == 600_000 })
      }
      #expect(eventually { disk.interrupted.load(ordering: .relaxed) == 1 })
      #expect(eventually { ContentDirectory.names(in: disk.contents.path + "/incoming").isEmpty })
    }
  }

  private static let multipart = "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/related; boundary=b\r\n"

  @Test func fileIsOpenedOnlyAfterTheHead() throws {
    for heldBytesMax in [0, 1 << 20] {
      let disk = try Disk(.init(heldBytesMax: heldBytesMax))
      try withServer(disk) { port in
        let client = try Client(port)
        let head = "--b\r\nContent-Type: a/b\r\n\r\n{}\r\n--b\r\nContent-Type: a/b\r\n"
        let rest = "\r\nhello\r\n--b--"
        client.send("\(Self.multipart)Content-Length: \(head.utf8.count + rest.utf8.count)\r\n\r\n\(head)")
        #expect(eventually { disk.received.load(ordering: .relaxed) == head.utf8.count })
        usleep(50_000)
        #expect(disk.opened.load(ordering: .relaxed) == 0)
        client.send(rest)
        #expect(client.read(until: "5d41402abc4b2a76b9719d911017c592").contains("200 OK"))
        #expect(disk.opened.load(ordering: .relaxed) == 1)
      }
    }
  }

  @Test func longHeadsAreRefusedAboveTheMemoryLimit() throws {
    let disk = try Disk(.init(heldBytesMax: 0))
    try withServer(disk) { port in
      let client = try Client(port)
      client.send("\(Self.multipart)Content-Length: 10000\r\n\r\n" + String(repeating: "x", count: 10_000))
      #expect(client.read(until: "tooManyUploads").contains("507"))
      #expect(disk.opened.load(ordering: .relaxed) == 0)
    }
  }

  /// If all uploads together exceed the memory limit, each continues in small steps.
  @Test func uploadsContinueAboveTheMemoryLimit() throws {
    var limits = UploadBody.Limits()
    limits.heldBytesMax = 0
    let disk = try Disk(limits)
    try withServer(disk) { port in
      let size = 1 << 20
      let results = Results()
      let group = DispatchGroup()
      for number in 0..<8 {
        group.enter()
        Thread {
          defer { group.leave() }
          guard let client = try? Client(port) else { return }
          client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(size)\r\n\r\n")
          _ = client.send([UInt8](repeating: UInt8(number), count: size)[...])
          let reply = client.read(until: "\(size) ")
          results.all.withLock { $0.append(reply) }
        }.start()
      }
      #expect(group.wait(timeout: .now() + 120) == .success)
      let replies = results.all.withLock { $0 }
      #expect(
        replies.count == 8 && replies.allSatisfy { $0.contains("200 OK") && $0.contains("\(size) ") }, "\(replies)")
    }
  }
}
