import Testing

@testable import Hosting

/// Paths of requests.
@Suite struct SitePathTests {
  private static func decoded(_ text: String) -> String? {
    Array(text.utf8).withUnsafeBytes { SitePath(decoding: $0) }.map { String(decoding: $0.bytes, as: UTF8.self) }
  }

  @Test(arguments: [
    ("/", "/"), ("//a///b/", "/a/b/"), ("/a%20b", "/a b"), ("/%C3%BC", "/ü"), ("/...", "/..."), ("/a..b", "/a..b"),
    ("/%2F%2Fa", "/a"), ("/a%2Fb", "/a/b"), ("/a\\b", "/a\\b"), ("/%252e", "/%2e"),
  ])
  func pathsAreDecodedOnce(target: String, path: String) { #expect(Self.decoded(target) == path) }

  @Test(arguments: [
    "", "a", "/..", "/../a", "/a/..", "/a/../b", "/./a", "/%2e%2e/a", "/%2E./a", "/a/%2e%2e%2fb", "/a%00", "/a%0Ab",
    "/a%7f", "/%", "/%4", "/%zz", "/%ff", "/%C3", "/" + String(repeating: "a", count: HostingLimits.pathBytesMax),
    "/" + String(repeating: "%61", count: 3 * HostingLimits.pathBytesMax),
    String(repeating: "/a", count: HostingLimits.segmentsMax + 1),
  ])
  func pathsOfNoFileAreRefused(target: String) { #expect(Self.decoded(target) == nil) }

  @Test func pathsMayHaveTheLargestNumberOfSegments() {
    let path = String(repeating: "/a", count: HostingLimits.segmentsMax)
    #expect(Self.decoded(path) == path)
  }

  @Test func encodedPathsAreTheSamePaths() throws {
    for text in ["/a b", "/ü?x#y", "/100%", "/\\\\host", "/a+b&c=d", "/'\"<>"] {
      let path = try #require(SitePath(text))
      #expect(Self.decoded(path.encoded) == text)
      #expect(!path.encoded.contains("\\") && !path.encoded.contains("?"))
    }
  }

  @Test(
    arguments: [
      ("fr-CA,fr;q=0.9,en;q=0.5", nil, nil, ["fr_ALL", "fr", "en_ALL", "en"]),
      ("en;q=0.1, de", nil, nil, ["de_ALL", "de", "en_ALL", "en"]),
      ("fr", "CA", nil, ["fr_ca", "ALL_ca", "fr_ALL", "fr"]),
      (
        "fr", "CA", "a=b; firebase-language-override=es; firebase-country-override=mx",
        ["es_mx", "ALL_mx", "es_ALL", "es"]
      ),
      ("../..,*,a;q=x,q=1", "../etc", nil, []), (nil, "us", nil, ["ALL_us"]), ("en;q=0", nil, nil, []),
    ] as [(String?, String?, String?, [String])])
  func foldersFollowThePreferences(accepted: String?, country: String?, cookie: String?, folders: [String]) {
    #expect(Languages(acceptLanguage: accepted, country: country, cookie: cookie).folders == folders)
  }
}
