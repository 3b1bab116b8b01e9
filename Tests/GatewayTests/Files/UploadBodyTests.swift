import Basics
import Files
import FileService
import Foundation
import GatewayCore
import Glibc
import Testing
import TestSupport
import WireFormat

@testable import StorageAPI
@testable import Transport

/// The path of an upload from a connection to a disk: over real sockets, with a disk that tests can stop.
@Suite struct UploadBodyTests {
  /// A disk that writes only while its gate is open, and the state of the uploads to it.
  private final class Disk: RequestHandler {
    let directory: TemporaryDirectory
    let contents: ContentDirectory
    /// Whether the disk writes.
    let isOpen: Observed<Bool>
    /// Whether an interrupted upload may be released.
    let mayRelease = Observed(true)
    let limits: UploadBody.Limits
    let failure: FilesError?
    let uploads = Observed(Uploads())

    struct Uploads {
      /// The body bytes that uploads have taken from connections.
      var received = 0
      var interrupted = 0
      /// Whether an upload was interrupted, although it may not be released yet.
      var isReleasing = false
      /// Requests that got an error.
      var failed = 0
      var opened = 0
      /// Whether the latest upload has stopped reading from its client.
      var isPaused = false
      /// The queue of the latest upload.
      var queue: WorkerLane?
    }

    /// - Parameters:
    ///   - failure: the error of opening a file.
    ///   - fault: the `errno` of writing to it.
    init(
      _ limits: UploadBody.Limits = .init(), failure: FilesError? = nil, fault: Int32 = 0, isOpen: Bool = true
    ) throws {
      directory = try TemporaryDirectory()
      let isOpen = Observed(isOpen)
      self.isOpen = isOpen
      contents = try ContentDirectory(directory.path + "/files") { call in
        guard call == .write else { return 0 }
        _ = isOpen.wait { $0 }
        return fault
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
        case .failure(let error):
          self.uploads.update { $0.failed += 1 }
          respond(507, "\(error)")
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
      uploads.update { $0.queue = body.queue }
      return Counted(body, self)
    }

    /// The steps of an upload that ends with the checksums of its content.
    private struct Steps: UploadSteps {
      let disk: Disk

      func open() throws(FilesError) -> UploadFile {
        if let failure = disk.failure { throw failure }
        disk.uploads.update { $0.opened += 1 }
        return UploadFile(incoming: try disk.contents.makeIncoming(FileStore.randomID()))
      }

      func finish(_ file: UploadFile) throws(FilesError) -> UploadResult {
        .stored(
          StoredObject(
            name: ObjectName(bucket: "b", name: "a"), generation: 1, created: 1, updated: 1,
            content: try file.incoming.finish(), attributes: ObjectAttributes()))
      }

      func interrupt(_ file: UploadFile) {
        disk.uploads.update { $0.isReleasing = true }
        _ = disk.mayRelease.wait { $0 }
        disk.uploads.update { $0.interrupted += 1 }
      }
    }

    /// Waits until the queue of the latest upload has done all its work so far.
    func settle() {
      guard let queue = uploads.value.queue else { return }
      wait { done in queue.runAlways { done(()) } }
    }

    /// Forwards a body and counts its bytes.
    private final class Counted: BodySink {
      let body: UploadBody
      let disk: Disk
      init(_ body: UploadBody, _ disk: Disk) { (self.body, self.disk) = (body, disk) }
      func received(_ bytes: UnsafeRawBufferPointer) {
        body.received(bytes)
        disk.uploads.update {
          $0.received += bytes.count
          $0.isPaused = body.isPaused
        }
      }
      func ended() { body.ended() }
    }
  }

  private func withServer(_ disk: Disk, _ body: (UInt16, HTTPServer) throws -> Void) throws {
    var configuration = TransportConfiguration()
    configuration.port = 0
    configuration.loops = 1
    // A client that gets an early response may continue to send, even slowly.
    configuration.lingerSeconds = 60
    let server = try HTTPServer(configuration: configuration, handler: disk)
    let port = UInt16(try server.start().port)
    defer { server.stop(graceSeconds: 0) }
    try body(port, server)
  }

  /// Sends a request and reads until a text arrives or the response ends. Returns what arrived.
  private static func exchange(_ port: UInt16, _ head: String, _ body: [UInt8], until text: String) -> String {
    guard let client = try? LoopbackSocket(port: port, readSeconds: 60, writeSeconds: 60) else {
      return "no connection"
    }
    client.send(head)
    client.send(body)
    return client.read(until: text)
  }

  @Test func slowDiskSlowsTheClientDown() throws {
    let disk = try Disk(isOpen: false)
    let size = 64 << 20
    try withServer(disk) { port, server in
      let reply = startThreads(1) { _ in
        Self.exchange(
          port, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(size)\r\n\r\n", [UInt8](repeating: 7, count: size),
          until: " ")
      }
      #expect(disk.uploads.wait { $0.isPaused })
      for _ in 0..<50 { server.sweepDeadlines() }
      let received = disk.uploads.value.received
      let limits = UploadBody.Limits()
      #expect(received > limits.waitingBytesMax)
      #expect(received <= limits.waitingBytesMax + limits.pieceBytes + (128 << 10), "\(received)")
      // The client has more to send, but the server does not read it.
      for _ in 0..<50 { server.sweepDeadlines() }
      #expect(disk.uploads.value.received == received)
      disk.isOpen.value = true
      #expect(reply()[0].contains("200 OK"))
    }
    #expect(disk.uploads.value.received == size)
  }

  @Test func failedBodyIsReadToItsEndBeforeTheResponse() throws {
    let disk = try Disk(failure: .full)
    try withServer(disk) { port, _ in
      let size = 12 << 20
      let client = try LoopbackSocket(port: port, readSeconds: 60, writeSeconds: 60)
      client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(size)\r\n\r\n")
      // The server reads the whole body, although the client does not read the response yet.
      #expect(client.send([UInt8](repeating: 7, count: size)[...]) == size)
      #expect(client.read(until: "full").contains("507"))
      #expect(disk.uploads.value.received == size)
      // The connection stays usable.
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(client.read(until: "404").contains("404"))
    }
  }

  @Test func longFailedBodyGetsItsResponseAtOnce() throws {
    let disk = try Disk(failure: .full)
    try withServer(disk) { port, _ in
      let client = try LoopbackSocket(port: port, readSeconds: 60, writeSeconds: 60)
      client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(DiscardedBody.bytesMax + 1)\r\n\r\n")
      #expect(client.send([UInt8](repeating: 7, count: 1 << 20)[...]) == 1 << 20)
      let reply = client.read(until: "full")
      #expect(reply.contains("507") && reply.contains("Connection: close"))
    }
  }

  @Test func bodyWithoutALengthIsDiscardedUpToALimit() throws {
    let disk = try Disk(failure: .full)
    try withServer(disk) { port, _ in
      let client = try LoopbackSocket(port: port, readSeconds: 60, writeSeconds: 60)
      client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
      let chunk = Array("100000\r\n".utf8) + [UInt8](repeating: 7, count: 1 << 20) + Array("\r\n".utf8)
      var chunks = 0
      while chunks < 64, client.send(chunk[...]) == chunk.count { chunks += 1 }
      #expect(chunks < 64)
      // Until the queue reports the failure, the server buffers the body as usual.
      let limits = UploadBody.Limits()
      let keptMax = limits.waitingBytesMax + limits.pieceBytes + (128 << 10)
      let received = disk.uploads.value.received
      #expect(received > DiscardedBody.bytesMax && received <= DiscardedBody.bytesMax + keptMax, "\(received)")
    }
  }

  /// A client that sends a body without end is not read while its upload is being released.
  @Test func endlessBodyIsNotReadUntilTheUploadIsReleased() throws {
    let disk = try Disk(fault: ENOSPC)
    disk.mayRelease.value = false
    try withServer(disk) { port, server in
      let reply = startThreads(1) { _ in
        Self.exchange(
          port, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
          Array("4000000\r\n".utf8) + [UInt8](repeating: 7, count: 64 << 20), until: "full")
      }
      #expect(disk.uploads.wait { $0.isPaused && $0.received > DiscardedBody.bytesMax })
      for _ in 0..<50 { server.sweepDeadlines() }
      let limits = UploadBody.Limits()
      let keptMax = limits.waitingBytesMax + limits.pieceBytes + (128 << 10)
      #expect(disk.uploads.value.received <= DiscardedBody.bytesMax + keptMax)
      #expect(disk.uploads.value.failed == 0)
      disk.mayRelease.value = true
      #expect(reply()[0].contains("507"))
    }
  }

  /// Otherwise the client's next request for the upload could be rejected, because the upload is still in use.
  @Test(arguments: [1 << 20, DiscardedBody.bytesMax + 1])
  func errorIsSentAfterTheUploadIsReleased(bodyBytes: Int) throws {
    let disk = try Disk(fault: ENOSPC)
    disk.mayRelease.value = false
    try withServer(disk) { port, server in
      let client = try LoopbackSocket(port: port, readSeconds: 60, writeSeconds: 60)
      client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(bodyBytes)\r\n\r\n")
      client.send([UInt8](repeating: 7, count: 1 << 20))
      #expect(disk.uploads.wait { $0.received == 1 << 20 && $0.isReleasing })
      for _ in 0..<50 { server.sweepDeadlines() }
      #expect(disk.uploads.value.failed == 0)
      disk.mayRelease.value = true
      #expect(client.read(until: "full").contains("507"))
      #expect(disk.uploads.value.interrupted == 1)
    }
  }

  @Test func disconnectedClientLeavesNoFile() throws {
    let disk = try Disk()
    try withServer(disk) { port, _ in
      do {
        let client = try LoopbackSocket(port: port, readSeconds: 60, writeSeconds: 60)
        client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
        _ = client.send([UInt8](repeating: 7, count: 600_000)[...])
        #expect(disk.uploads.wait { $0.received == 600_000 })
      }
      #expect(disk.uploads.wait { $0.interrupted == 1 })
      disk.settle()
      #expect(ContentDirectory.names(in: disk.contents.path + "/incoming").isEmpty)
    }
  }

  private static let multipart = "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/related; boundary=b\r\n"

  @Test func fileIsOpenedOnlyAfterTheHead() throws {
    for heldBytesMax in [0, 1 << 20] {
      let disk = try Disk(.init(heldBytesMax: heldBytesMax))
      try withServer(disk) { port, _ in
        let client = try LoopbackSocket(port: port, readSeconds: 60, writeSeconds: 60)
        let head = "--b\r\nContent-Type: a/b\r\n\r\n{}\r\n--b\r\nContent-Type: a/b\r\n"
        let rest = "\r\nhello\r\n--b--"
        client.send("\(Self.multipart)Content-Length: \(head.utf8.count + rest.utf8.count)\r\n\r\n\(head)")
        #expect(disk.uploads.wait { $0.received == head.utf8.count })
        disk.settle()
        #expect(disk.uploads.value.opened == 0)
        client.send(rest)
        #expect(client.read(until: "5d41402abc4b2a76b9719d911017c592").contains("200 OK"))
        #expect(disk.uploads.value.opened == 1)
      }
    }
  }

  @Test func longHeadsAreRefusedAboveTheMemoryLimit() throws {
    let disk = try Disk(.init(heldBytesMax: 0))
    try withServer(disk) { port, _ in
      let client = try LoopbackSocket(port: port, readSeconds: 60, writeSeconds: 60)
      client.send("\(Self.multipart)Content-Length: 10000\r\n\r\n" + String(repeating: "x", count: 10_000))
      #expect(client.read(until: "tooManyUploads").contains("507"))
      #expect(disk.uploads.value.opened == 0)
    }
  }

  /// If all uploads together exceed the memory limit, each continues in small steps.
  @Test func uploadsContinueAboveTheMemoryLimit() throws {
    var limits = UploadBody.Limits()
    limits.heldBytesMax = 0
    let disk = try Disk(limits)
    try withServer(disk) { port, _ in
      let size = 1 << 20
      let replies = onThreads(8) { number in
        Self.exchange(
          port, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(size)\r\n\r\n",
          [UInt8](repeating: UInt8(number), count: size), until: "\(size) ")
      }
      #expect(replies.allSatisfy { $0.contains("200 OK") && $0.contains("\(size) ") }, "\(replies)")
    }
  }
}
