import Basics
import HearthServer
import TestSupport
import Testing

/// Pipelines that would run for a long time, over real sockets.
@Suite struct PipelineLoadTests {
  /// Makes 60 to the power of 4 rows of one, and sorts them.
  private static let stages: [String] = {
    let list = #"{"arrayValue": {"values": [\#((0..<60).map { Pipe.int($0) }.joined(separator: ","))]}}"#
    let expand = ["a", "b", "c", "d"].map { Pipe.stage("unnest", Pipe.field("list"), Pipe.field($0)) }
    return [Pipe.stage("literals", Pipe.map(("list", list)))] + expand
      + [Pipe.stage("select", Pipe.map(("a", Pipe.field("a")))), Pipe.stage("sort", Pipe.order(Pipe.field("a")))]
  }()

  /// While a pipeline runs, others get responses. It ends with its client, and gives its memory back.
  @Test func pipelineEndsWithItsClient() async throws {
    try await onDedicatedThread {
      let budget = ScratchBudget(ScratchBudget.Limits(), hasTimer: false)
      let server = try TestServer { $0.scratchBudget = budget }
      let path = "/v1/\(TestServer.name):executePipeline"
      let client = try FeedConnection(
        port: server.port, "POST", path, headers: [("Content-Type", "application/json")], body: Pipe.body(Self.stages))
      var isRunning = false
      for _ in 0..<5_000 where !isRunning {
        #expect(try server.call("GET", "/healthz").status < 500)
        isRunning = budget.use.memoryBytes > 0
      }
      #expect(isRunning)
      client.close()
      var isFree = false
      for _ in 0..<5_000 where !isFree {
        _ = try server.call("GET", "/healthz")
        isFree = budget.use == (0, 0, 0)
      }
      #expect(isFree, "the pipeline continues without its client")
    }
  }
}
