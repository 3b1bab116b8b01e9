import ContentSharing
import Basics
import Files
import Testing
import WireFormat

@Suite struct ContentHasherTests {
  @Test func checksumsMatchThoseOfClients() throws {
    let hasher = ContentHasher()
    Array("hel".utf8).withUnsafeBytes { hasher.update($0) }
    Array("lo".utf8).withUnsafeBytes { hasher.update($0) }
    let content = try hasher.finish()
    #expect(content.size == 5)
    #expect(content.crc32cBytes == [0x9A, 0x71, 0xBB, 0x4C])
    #expect(Hexadecimal.text(content.md5) == "5d41402abc4b2a76b9719d911017c592")
    #expect(content.digest.text == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")
  }
}
