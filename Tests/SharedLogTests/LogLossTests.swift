import SharedLog
import Testing

@Suite struct LogLossTests {
  @Test func theTextNamesEverything() {
    let loss = LogLoss(number: .max - 1, node: 3, seconds: 1_800_000_000)
    #expect(loss.text == "fffffffffffffffe 3 1800000000")
    #expect(LogLoss(loss.text) == loss)
  }

  @Test(arguments: [
    "", "1 2", "1 2 3 4", "x 2 3", "1 -2 3", "1 2 ", "1  3", "10000000000000000 1 1", "1 1 -1",
    "1 1 9223372036854775807",
  ])
  func otherTextsAreRefused(text: String) {
    #expect(LogLoss(text) == nil)
  }
}
