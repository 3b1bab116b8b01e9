import Basics
import Testing

@Suite struct DurationClassesTests {
  @Test func boundsIncreaseAndEachHasAClass() {
    #expect(DurationClasses.bounds == DurationClasses.bounds.sorted() && DurationClasses.bounds.first == 100)
    #expect(DurationClasses.count == DurationClasses.bounds.count + 1)
  }

  /// A duration equal to a bound belongs to the class below the bound, as in Prometheus histograms.
  @Test(arguments: [(0, 0), (100, 0), (101, 1), (1000, 3), (10_000_000, 14), (10_000_001, 15), (Int.max, 15)])
  func durationsBelongToClasses(microseconds: Int, place: Int) {
    #expect(DurationClasses.place(of: microseconds) == place)
  }
}
