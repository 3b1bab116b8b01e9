import Basics
import Testing

struct DatabaseIDPartTests {
  @Test(arguments: [
    "a", "(default)", "demo-shop", "example.com:shop", "a_b~c", "...", "x" + String(repeating: "9", count: 99),
  ])
  func anIDIsPermitted(_ text: String) { #expect(DatabaseIDPart.isValid(text)) }

  @Test(arguments: ["", ".", "..", "a/b", "a b", "ä", "a\0", "a%", "x" + String(repeating: "9", count: 100)])
  func otherTextIsRefused(_ text: String) { #expect(!DatabaseIDPart.isValid(text)) }
}
