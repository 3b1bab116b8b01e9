import Basics
import Testing

@Suite struct HexadecimalTests {
  @Test func everyByteHasTwoLowercaseDigits() {
    let bytes = (0...255).map { UInt8($0) }
    let text = Hexadecimal.text(bytes)
    #expect(text.hasPrefix("000102") && text.hasSuffix("fdfeff"))
    #expect(Hexadecimal.bytes(text) == bytes)
  }

  @Test(arguments: ["0", "0g", "AF", "é0", "0 "])
  func otherTextsHaveNoBytes(text: String) {
    #expect(Hexadecimal.bytes(text) == nil)
  }

  @Test func digitsOfBothCasesHaveValues() {
    #expect("0123456789abcdefABCDEF".utf8.map(Hexadecimal.digit) == Array(0...15) + Array(10...15))
    #expect("/:@G`g".utf8.allSatisfy { Hexadecimal.digit($0) == nil })
  }
}
