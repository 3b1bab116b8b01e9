import DocumentModel
import DocumentStore
import TestSupport
import Testing
@testable import PipelineEngine

/// The time that a pipeline may take.
@Suite struct DeadlineTests {
  /// A clock that advances with each reading.
  private final class Steps {
    var now = ContinuousClock.now
    let step: Duration
    init(_ step: Duration) { self.step = step }

    func next() -> ContinuousClock.Instant {
      now += step
      return now
    }
  }

  private static func world() throws -> PipelineWorld {
    let world = try PipelineWorld()
    try world.set((0..<100).map { (document("c/d\($0)").path, MapValue([("n", .integer($0))])) })
    return world
  }

  /// Slices count, the time between them does not.
  @Test func slicesTogetherHaveALimit() throws {
    let world = try Self.world()
    let clock = Steps(.seconds(7))
    let execution = try world.execution([.c], clock: clock.next)
    var slices = 0
    let error = #expect(throws: PipelineError.self) {
      while true {
        try world.database.read { try execution.slice($0.snapshot, units: 1) { _ in true } }
        clock.now += .seconds(1000)
        slices += 1
      }
    }
    #expect(slices == 9)
    #expect(error?.code == .deadlineExceeded)
    #expect(error?.description == "The pipeline ran for more than 60 seconds.")
  }

  @Test func fastPipelineEnds() throws {
    let world = try Self.world()
    let clock = Steps(.milliseconds(1))
    let execution = try world.execution([.c, .opaque], clock: clock.next)
    #expect(try world.rows(execution, units: 1).count == 100)
  }
}
