import Testing

@testable import OperationsAPI

/// The text format of Prometheus, byte by byte.
@Suite struct MetricsTextTests {
  @Test func writesFamiliesAndSamples() {
    var text = MetricsText()
    text.family("a_total", .counter, "What it is.")
    text.sample([], 3)
    text.sample([("kind", "q\"uo\\te\nd ü")], 0.25)
    text.family("b", .gauge, "Other.")
    text.sample([("x", "1"), ("y", "")], 1e21)
    #expect(
      String(decoding: text.bytes, as: UTF8.self) == #"""
        # HELP a_total What it is.
        # TYPE a_total counter
        a_total 3
        a_total{kind="q\"uo\\te\nd ü"} 0.25
        # HELP b Other.
        # TYPE b gauge
        b{x="1",y=""} 1e+21

        """#)
  }

  @Test func histogramsAddUp() {
    var text = MetricsText()
    text.family("h", .histogram, "H.")
    text.histogram([("l", "v")], bounds: [0.001, 5], counts: [1, 2, 3], sum: 7.5)
    #expect(
      String(decoding: text.bytes, as: UTF8.self) == #"""
        # HELP h H.
        # TYPE h histogram
        h_bucket{l="v",le="0.001"} 1
        h_bucket{l="v",le="5"} 3
        h_bucket{l="v",le="+Inf"} 6
        h_sum{l="v"} 7.5
        h_count{l="v"} 6

        """#)
  }
}
