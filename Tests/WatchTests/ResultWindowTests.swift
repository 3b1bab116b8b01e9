import DocumentModel
import Testing
import TestSupport
@testable import Watch

/// The window of a limited query's results, and resume tokens.
@Suite struct ResultWindowTests {
  enum Step: Sendable {
    case insert(UInt8)
    case remove(UInt8)
    case lose(UInt8)
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    let places: Range<Int>
    let start: [UInt8]
    let steps: [Step]
    let shown: [UInt8]
    var isShort = false
    var testDescription: String { name }
  }

  private static let few: [UInt8] = [10, 20, 30]
  /// As many as fit in a window of two positions and its slack, so that there may be more results.
  private static let full: [UInt8] = Array(stride(from: 10, to: 110, by: 10))

  static let cases: [Case] = [
    Case(name: "shows the first", places: 0..<2, start: few, steps: [], shown: [10, 20]),
    Case(name: "skips the offset", places: 1..<3, start: few, steps: [], shown: [20, 30]),
    Case(name: "an offset after the end", places: 5..<7, start: few, steps: [], shown: []),
    Case(name: "takes a new first result", places: 0..<2, start: few, steps: [.insert(5)], shown: [5, 10]),
    Case(name: "takes a result in between", places: 0..<2, start: few, steps: [.insert(15)], shown: [10, 15]),
    Case(name: "ignores a result that it has", places: 0..<3, start: few, steps: [.insert(10)], shown: [10, 20, 30]),
    Case(
      name: "takes a new last result while it is complete", places: 0..<4, start: few, steps: [.insert(40)],
      shown: [10, 20, 30, 40]),
    Case(name: "moves results up", places: 0..<2, start: few, steps: [.remove(10)], shown: [20, 30]),
    Case(name: "moves results up by path", places: 0..<2, start: few, steps: [.lose(20)], shown: [10, 30]),
    Case(name: "moves results up after the offset", places: 1..<2, start: few, steps: [.remove(10)], shown: [30]),
    Case(
      name: "ignores the removal of an unknown result", places: 0..<2, start: few, steps: [.remove(15), .lose(15)],
      shown: [10, 20]),
    Case(
      name: "may become empty if complete", places: 0..<2, start: few, steps: few.map { .remove($0) }, shown: []),
    Case(
      name: "does not take a result that unknown ones may precede", places: 0..<2, start: full,
      steps: [.insert(105)] + full.dropLast().map { .remove($0) }, shown: [100], isShort: true),
    Case(
      name: "is short if more results left than it had slack", places: 0..<2, start: full,
      steps: full.dropFirst().map { .remove($0) }, shown: [10], isShort: true),
    Case(
      name: "is not short while some slack is left", places: 0..<2, start: full,
      steps: full.dropFirst(2).map { .remove($0) }, shown: [10, 20]),
  ]

  private static func entry(_ number: UInt8) -> ResultWindow.Entry {
    ResultWindow.Entry(place: [number], path: collection("c").appending("d\(number)"))
  }

  private static func shown(_ window: ResultWindow) -> [UInt8] {
    window.shown.compactMap { UInt8($0.id.dropFirst()) }
  }

  private static func apply(_ step: Step, to window: inout ResultWindow) {
    switch step {
    case .insert(let number): window.insert(entry(number))
    case .remove(let number): window.remove(place: [number])
    case .lose(let number): window.remove(entry(number).path)
    }
  }

  @Test(arguments: cases)
  func showsTheResultsAtItsPositions(_ one: Case) {
    #expect(ResultWindow.capacity(0..<2) == Self.full.count)
    var window = ResultWindow(one.places, one.start.map(Self.entry))
    for step in one.steps { Self.apply(step, to: &window) }
    #expect(Self.shown(window) == one.shown)
    #expect(window.isShort == one.isShort)
  }

  /// Unless the window is short, it shows the same results as a sorted list of all results.
  @Test(arguments: 1...UInt64(50))
  func windowMatchesASortedList(_ seed: UInt64) {
    var random = SplitMix(seed: seed)
    let low = Int.random(in: 0...3, using: &random)
    let places = low..<low + Int.random(in: 1...12, using: &random)
    var all = Set((0..<60).map { _ in UInt8(random.next() % 200) })
    func fill() -> ResultWindow {
      ResultWindow(places, all.sorted().prefix(ResultWindow.capacity(places)).map(Self.entry))
    }
    var window = fill()
    var refills = 0
    for step in 0..<400 {
      let number = UInt8(random.next() % 200)
      if random.next() % 5 < 2 {
        all.insert(number)
        window.insert(Self.entry(number))
      } else {
        all.remove(number)
        Self.apply(random.chance(oneIn: 2) ? .remove(number) : .lose(number), to: &window)
      }
      if window.isShort {
        window = fill()
        refills += 1
      }
      let expected = Array(all.sorted().dropFirst(places.lowerBound).prefix(places.count))
      guard Self.shown(window) == expected else {
        Issue.record("seed \(seed), step \(step): \(Self.shown(window)) is not \(expected)")
        return
      }
    }
    // Most changes do not require that the query runs again.
    #expect(refills < 60, "seed \(seed)")
  }

  @Test(arguments: [0, 1, 5, Int64.max, Int64.min])
  func resumeTokensRoundTrip(_ version: Int64) {
    let token = ResumeToken(incarnation: .max, version: version)
    #expect(ResumeToken(token.bytes) == token)
    for index in token.bytes.indices {
      var broken = token.bytes
      broken[index] ^= 1
      #expect(ResumeToken(broken) == nil)
    }
    #expect(ResumeToken(Array(token.bytes.dropLast())) == nil)
  }
}
