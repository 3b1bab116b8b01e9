import DocumentStore
import Foundation
import HearthServer
import Testing
import TestSupport

@testable import ConsoleAPI

/// Decisions of a production server, which are recorded only while an operator has switched that on.
@Suite struct RecordingTests {
  private static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        match /open/{id} { allow read: if resource.data.count > 0; }
      }
    }

    """
  private static let recording = "/hearth/v1/recording"
  private static let requests = "/hearth/v1/requests"

  /// A production server with the rules above, a document, and a clock that the test moves.
  private struct World {
    let directory: TemporaryDirectory
    let console: OperatorConsole
    let time = SteppedTime()
    let owner: String
    let viewer: String

    init() throws {
      let directory = try TemporaryDirectory()
      self.directory = directory
      try directory.write("f.rules", RecordingTests.rules)
      let (file, time) = (directory.file("f.rules"), time)
      console = try OperatorConsole {
        $0.rules = [.init(file)]
        $0.clock = Clock { time.now }
      }
      owner = try console.token("owner")
      viewer = try console.token("viewer")
      let made = try console.request(
        "PATCH", "\(TestServer.root)/open/a", #"{"fields": {"count": {"integerValue": "7"}}}"#, token: owner)
      #expect(made.status == 200, "\(made.text)")
    }

    /// Reads a document without credentials, and returns the status.
    @discardableResult
    func read(_ path: String) throws -> Int { try console.main.request("GET", "\(TestServer.root)/\(path)").status }

    func start(_ body: String = "{}") throws -> TestServer.Response {
      try console.request("POST", RecordingTests.recording, body, token: owner)
    }

    var count: Int {
      get throws {
        let list = try console.request("GET", RecordingTests.requests, token: viewer)
        return try #require(list.json("requests", as: [Any].self)?.count, "\(list.text)")
      }
    }

    var isOn: Bool {
      get throws {
        let state = try console.request("GET", RecordingTests.recording, token: viewer)
        #expect(state.status == 200, "\(state.text)")
        return state.json("isOn", as: Bool.self) == true
      }
    }
  }

  @Test func eachBeginningAndEndIsReportedOnce() {
    let (time, changes) = (SteppedTime(), Observed<[Bool]>([]))
    let recording = DecisionRecording(now: { time.now }) { _ in [] }
    recording.onChange { isOn in changes.update { $0.append(isOn) } }
    recording.start(seconds: 10, requests: 5)
    for _ in 0..<2 { recording.stop() }
    recording.start(seconds: 10, requests: 5)
    time.advance(seconds: 11)
    for _ in 0..<2 { #expect(!recording.state.isOn) }
    #expect(changes.value == [true, false, true, false])
  }

  @Test func decisionsAreRecordedWhileAnOwnerWantsIt() throws {
    let world = try World()
    #expect(try world.read("open/a") == 200)
    #expect(try !world.isOn)
    #expect(try world.count == 0)
    let started = try world.start()
    #expect(started.status == 200 && started.json("isOn", as: Bool.self) == true, "\(started.text)")
    #expect(started.json("secondsLeft", as: Int.self) == DecisionLogLimits.recordedSecondsMax)
    #expect(started.json("requestsLeft", as: Int.self) == DecisionLogLimits.requestsMax)
    #expect(try world.read("open/a") == 200)
    #expect(try world.read("closed/a") == 403)
    let list = try world.console.request("GET", Self.requests, token: world.viewer)
    #expect(list.json("requests", 0, "allowed", as: Bool.self) == true, "\(list.text)")
    #expect(list.json("requests", 1, "targets", 0, "path") == "closed/a")
    let number = try #require(list.json("requests", 0, "number", as: Int.self))
    let explained = try world.console.request("GET", "\(Self.requests)/\(number)", token: world.viewer)
    #expect(explained.text.contains(#""value":"7""#), "\(explained.text)")
    #expect(try world.console.request("DELETE", Self.recording, token: world.owner).status == 200)
    try world.read("open/a")
    #expect(try world.count == 2)
    // The next recording begins with an empty log.
    #expect(try world.start().status == 200)
    #expect(try world.count == 0)
    try world.read("open/a")
    #expect(try world.console.request("DELETE", Self.requests, token: world.owner).status == 200)
    #expect(try world.count == 0)
  }

  @Test func aRecordingEndsByItself() throws {
    let world = try World()
    #expect(try world.start(#"{"requests": 2}"#).status == 200)
    for _ in 0..<3 { try world.read("open/a") }
    #expect(try world.count == 2)
    #expect(try !world.isOn)
    #expect(try world.start(#"{"seconds": 60}"#).status == 200)
    world.time.advance(seconds: 59)
    try world.read("open/a")
    #expect(try world.isOn)
    world.time.advance(seconds: 1)
    try world.read("open/a")
    #expect(try !world.isOn)
    #expect(try world.count == 1)
    for body in [
      #"{"seconds": 601}"#, #"{"seconds": 0}"#, #"{"requests": 1001}"#, #"{"requests": "5"}"#, #"{"seconds": 1.5}"#,
      "[]",
      "",
    ] {
      #expect(try world.start(body).status == 400, "\(body)")
    }
    #expect(try !world.isOn)
  }

  @Test func onlyOwnersSwitchItAndTheLogSaysWho() throws {
    let world = try World()
    let editor = try world.console.token("editor")
    for token in [world.viewer, editor] {
      for (method, path) in [("POST", Self.recording), ("DELETE", Self.recording), ("DELETE", Self.requests)] {
        let reply = try world.console.request(method, path, "{}", token: token)
        #expect(reply.status == 403, "\(method) \(path): \(reply.text)")
      }
    }
    #expect(try !world.isOn)
    #expect(try world.start().status == 200)
    #expect(
      world.console.log.contains(
        #"accounts: operator "owner" requested "POST /hearth/v1/recording" from this machine"#), "\(world.console.log)")
    // The address of the apps has none of it.
    for path in [Self.recording, Self.requests] {
      #expect(try world.console.main.request("GET", path).status == 404)
      #expect(try world.console.request("GET", path).status == 401)
    }
  }
}
