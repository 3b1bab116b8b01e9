import Accounts
import Files
import Foundation
import HearthServer
import Testing
import TestSupport
import WireFormat

/// Every change of a valid signed request is refused, unless the change means the same by Google's specification of
/// canonical requests.
///
/// The server compares paths and parameters as the client sent them. So it also refuses some URLs that mean the same but
/// are encoded in another way than the signer encoded them.
@Suite struct SignedURLMutationTests {
  /// A request with a signed URL.
  private struct Request {
    var method: String
    var path: String
    var query: [String]
    var headers: [(String, String)]
    var body: String?

    init(_ method: String, _ url: String, _ headers: [(String, String)] = [], body: String? = nil) {
      let parts = url.split(separator: "?", maxSplits: 1)
      self.method = method
      path = String(parts[0])
      query = parts[1].split(separator: "&").map(String.init)
      self.headers = headers
      self.body = body
    }

    var target: String { "\(path)?\(query.joined(separator: "&"))" }

    func send(_ server: TestServer) throws -> TestServer.Response {
      try server.request(method, target, body, headers: headers)
    }

    func changed(_ change: (inout Request) -> Void) -> Request {
      var request = self
      change(&request)
      return request
    }
  }

  private struct Mutation {
    let name: String
    let request: Request
    /// Whether the change means the same.
    var isEquivalent = false
  }

  // MARK: - Mutations

  /// The mutations of the parameters.
  private static func ofQuery(_ valid: Request, isVersion4: Bool) -> [Mutation] {
    var mutations: [Mutation] = []
    let signature = isVersion4 ? "X-Goog-Signature" : "Signature"
    for (index, part) in valid.query.enumerated() {
      let name = String(part.prefix { $0 != "=" })
      let value = String(part.dropFirst(name.count + 1))
      func add(_ what: String, equivalent: Bool = false, _ parts: String...) {
        mutations.append(
          Mutation(
            name: "\(name) \(what)",
            request: valid.changed { $0.query.replaceSubrange(index...index, with: parts) }, isEquivalent: equivalent))
      }
      add("removed")
      add("without a value", "\(name)=")
      add("without =", name)
      add("with another first character", "\(name)=\(value.first == "1" ? "2" : "1")\(value.dropFirst())")
      add("with another last character", "\(name)=\(value.dropLast())\(value.last == "1" ? "2" : "1")")
      add("with a longer value", part + "1")
      add("with a space before", "\(name)=%20\(value)")
      add("with a space after", part + "%20")
      add("with a NUL after", part + "%00")
      add("twice", part, part)
      add("twice, the first another", "\(name)=1", part)
      add("twice, the last another", part, "\(name)=1")
      add("in lower case", equivalent: name.lowercased() == name, "\(name.lowercased())=\(value)")
      add("in upper case", equivalent: name.uppercased() == name, "\(name.uppercased())=\(value)")
      let first = String(name.utf8.first ?? 0, radix: 16)
      // Version 2 signs values and not their encoding. The name that tells a signed URL apart is not decoded.
      add(
        "with an encoded name", equivalent: !isVersion4 && name != "GoogleAccessId",
        "%\(first)\(name.dropFirst())=\(value)")
      if let letter = value.utf8.first(where: { $0 != UInt8(ascii: "%") }), !value.hasPrefix("%") {
        add(
          "with an encoded value", equivalent: !isVersion4 || name == signature,
          "\(name)=%\(String(letter, radix: 16))\(value.dropFirst())")
      }
      if value.contains("%2F") || value.contains("%40") {
        let lower = value.replacing("%2F", with: "%2f")
        if lower != value {
          add("with lower-case escapes", equivalent: !isVersion4 || name == signature, "\(name)=\(lower)")
        }
        // A plus sign means a space.
        add(
          "decoded", equivalent: !isVersion4 && !value.contains("%2B"), "\(name)=\(value.removingPercentEncoding ?? "")"
        )
      }
    }
    mutations.append(
      Mutation(name: "parameters in another order", request: valid.changed { $0.query.reverse() }, isEquivalent: true))
    mutations.append(
      Mutation(name: "an empty parameter", request: valid.changed { $0.query.insert("", at: 1) }, isEquivalent: true))
    for other in ["generation=1", "alt=json", "response-content-type=text/html", "x=y", "ifGenerationMatch=0"] {
      // Version 2 does not sign parameters. The server ignores them, but for those that libraries add.
      mutations.append(
        Mutation(
          name: "another parameter \(other)", request: valid.changed { $0.query.append(other) },
          isEquivalent: !isVersion4))
    }
    return mutations
  }

  /// The mutations of the path `/bucket/dir/a`.
  private static func ofPath(_ valid: Request, isVersion4: Bool) -> [Mutation] {
    let paths = [
      "/bucket/dir/b", "/bucket/dir", "/bucket/dir/a/", "/bucket/dir//a", "//bucket/dir/a", "/bucket//dir/a",
      "/bucket/./dir/a", "/bucket/x/../dir/a", "/x/../bucket/dir/a", "/bucket/dir/a/.", "/bucket/dir/a/..",
      "/bucket%2Fdir/a", "/bucket/dir%2Fa", "/bucket/dir%2fa", "/bucket/%64ir/a", "/%62ucket/dir/a",
      "/bucket/dir/%2E%2E/dir/a", "/BUCKET/dir/a", "/bucket/DIR/a", "/bucket/dir/a%00", "/bucket/dir/a%20",
      "/bucket/dir/a;x", "/bucket/dir/a%3F", "/bucket/dir\\a", "/v0/b/bucket/o/dir%2Fa",
      "/dir/a", "/a", "http://localhost/bucket/dir/b",
      "http://other/bucket/dir/a", "http://bucket.localhost/dir/a",
    ]
    return paths.map { path in
      // Version 2 does not sign the host.
      let isEquivalent = !isVersion4 && path == "http://other/bucket/dir/a"
      return Mutation(
        name: "path \(path)", request: valid.changed { $0.path = path }, isEquivalent: isEquivalent)
    }
  }

  private static func ofMethod(_ valid: Request) -> [Mutation] {
    ["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "get", "PROPFIND"].filter { $0 != valid.method }.map { method in
      Mutation(
        name: "method \(method)", request: valid.changed { $0.method = method },
        isEquivalent: valid.method == "GET" && method == "HEAD")
    }
  }

  private static func ofHeaders(_ valid: Request, isVersion4: Bool) -> [Mutation] {
    var mutations: [Mutation] = []
    func add(_ name: String, _ header: String, _ value: String, equivalent: Bool = false) {
      mutations.append(
        Mutation(
          name: name, request: valid.changed { $0.headers.append((header, value)) }, isEquivalent: equivalent))
    }
    // Version 2 does not sign the host.
    add("forwarded host", "X-Forwarded-Host", "other", equivalent: !isVersion4)
    add("forwarded host of a bucket", "X-Forwarded-Host", "bucket.localhost", equivalent: !isVersion4)
    for name in [
      "X-Goog-Meta-Key", "x-goog-meta-firebasestoragedownloadtokens", "X-Goog-Acl", "X-Goog-Resumable",
      "X-Goog-If-Generation-Match", "X-Goog-Hash", "x-goog-copy-source", "X-Goog-Anything",
    ] {
      add("unsigned \(name)", name, name == "X-Goog-If-Generation-Match" ? "0" : "start")
    }
    add("method override", "X-HTTP-Method-Override", "DELETE", equivalent: true)
    add("language", "Accept-Language", "de", equivalent: true)
    add("referer", "Referer", "http://page.test/", equivalent: true)
    for (index, (name, value)) in valid.headers.enumerated() {
      func change(_ what: String, equivalent: Bool = false, _ fields: (String, String)...) {
        mutations.append(
          Mutation(
            name: "\(name) \(what)",
            request: valid.changed { $0.headers.replaceSubrange(index...index, with: fields) },
            isEquivalent: equivalent))
      }
      change("removed")
      change("empty", (name, ""))
      change("with another value", (name, value + "x"))
      change("twice", (name, value), (name, value))
      change("twice, the first another", (name, "x/y"), (name, value))
      change("twice, the last another", (name, value), (name, "x/y"))
      change("as a list", (name, "\(value),\(value)"))
      change("in upper case", equivalent: true, (name.uppercased(), value))
      change("with blanks around", equivalent: true, (name, "  \(value)\t "))
    }
    return mutations
  }

  // MARK: - Tests

  /// Sends mutations. Each must be refused unless it means the same.
  private static func check(_ valid: Request, _ mutations: [Mutation], _ server: TestServer) throws {
    let expected = try valid.send(server)
    #expect(expected.status == 200, "\(expected.text)")
    for mutation in mutations {
      let reply = try mutation.request.send(server)
      if mutation.isEquivalent {
        #expect(reply.status == 200, "\(mutation.name): \(reply.status) \(reply.text)")
      } else {
        #expect((400..<500).contains(reply.status), "\(mutation.name): \(reply.status) \(reply.text)")
        #expect(!reply.text.contains("hello"), "\(mutation.name): \(reply.text)")
      }
    }
  }

  /// A server in production mode, because an emulator accepts the URLs of signers that it does not know.
  private static func server() throws -> TestServer {
    let server = try TestServer(.production)
    let made = try server.call("POST", "/storage/v1/b?project=p", #"{"name": "bucket"}"#, headers: owner(server))
    #expect(made.status == 200, "\(made.text)")
    return server
  }

  /// The credentials of an administrator.
  private static func owner(_ server: TestServer) -> [(String, String)] {
    [("Authorization", "Bearer \(server.server.accounts.serviceKeys.localAccessToken())")]
  }

  private static func put(_ server: TestServer, _ name: String, _ content: String) throws {
    let encoded = name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? name
    let made = try server.call(
      "POST", "\(CloudFilesTests.uploads)?uploadType=media&name=\(encoded)", content,
      headers: owner(server) + [("Content-Type", "text/plain")])
    #expect(made.status == 200, "\(made.text)")
  }

  @Test(arguments: [true, false]) func changedDownloadsAreRefused(isVersion4: Bool) throws {
    let server = try Self.server()
    let signer = try URLSigner(server)
    for name in ["dir/a", "dir/b", "a"] { try Self.put(server, name, "hello") }
    let path = "/bucket/dir/a"
    let url =
      isVersion4
      ? try signer.v4("GET", path, [], [("response-content-disposition", "attachment; filename=a/b")])
      : try signer.v2("GET", path, until: Date() + 600)
    let valid = Request("GET", url)
    try Self.check(
      valid,
      Self.ofQuery(valid, isVersion4: isVersion4) + Self.ofPath(valid, isVersion4: isVersion4) + Self.ofMethod(valid)
        + Self.ofHeaders(valid, isVersion4: isVersion4), server)
  }

  @Test(arguments: [true, false]) func changedUploadsAreRefused(isVersion4: Bool) throws {
    let server = try Self.server()
    let signer = try URLSigner(server)
    try Self.put(server, "dir/a", "before")
    let headers = [("content-type", "text/plain"), ("x-goog-hash", "crc32c=Z1Vtiw==")]
    let path = "/bucket/dir/a"
    let url =
      isVersion4
      ? try signer.v4("PUT", path, headers)
      : try signer.v2("PUT", path, type: "text/plain", [headers[1]], until: Date() + 600)
    var valid = Request("PUT", url, headers, body: "wrong content")
    // The checksum is that of no content, so that the store never changes. The signature is verified first.
    #expect(try valid.send(server).status == 400)
    valid.headers[1].1 = "crc32c=AAAAAA=="
    #expect(try valid.send(server).status == 403)
    let body = "hello"
    let digest = Base64.encode(withUnsafeBytes(of: Self.crc32c(body).bigEndian) { Array($0) })
    let right = [headers[0], ("x-goog-hash", "crc32c=\(digest)")]
    let rightURL =
      isVersion4
      ? try signer.v4("PUT", path, right)
      : try signer.v2("PUT", path, type: "text/plain", [right[1]], until: Date() + 600)
    let upload = Request("PUT", rightURL, right, body: body)
    let mutations =
      Self.ofQuery(upload, isVersion4: isVersion4) + Self.ofPath(upload, isVersion4: isVersion4) + Self.ofMethod(upload)
      + Self.ofHeaders(upload, isVersion4: isVersion4)
    for mutation in mutations where !mutation.isEquivalent {
      let reply = try mutation.request.send(server)
      #expect((400..<500).contains(reply.status), "\(mutation.name): \(reply.status) \(reply.text)")
      let now = try server.request("GET", try signer.v4("GET", path)).text
      #expect(now == "before", "\(mutation.name)")
    }
    let made = try upload.send(server)
    #expect(made.status == 200 && made.json("contentType") == "text/plain", "\(made.text)")
    for mutation in mutations where mutation.isEquivalent {
      let reply = try mutation.request.send(server)
      #expect(reply.status == 200 && reply.json("name") == "dir/a", "\(mutation.name): \(reply.status) \(reply.text)")
      #expect(reply.json("contentType") == "text/plain", "\(mutation.name)")
    }
    let names: [String]? = try server.call(
      "GET", "/storage/v1/b/bucket/o?fields=items(name)", headers: Self.owner(server)
    ).json("items", as: [[String: Any]].self)?.compactMap { $0["name"] as? String }
    #expect(names == ["dir/a"], "no other object was made")
  }

  /// The CRC-32C of a text, bit by bit.
  private static func crc32c(_ text: String) -> UInt32 {
    ~text.utf8.reduce(0xFFFF_FFFF as UInt32) { sum, byte in
      (0..<8).reduce(sum ^ UInt32(byte)) { bits, _ in bits >> 1 ^ (bits & 1 == 1 ? 0x82F6_3B78 : 0) }
    }
  }

  /// Times that a signer may not choose, and the edges of those that it may.
  @Test func timesBeyondTheLimitsAreRefused() throws {
    let server = try Self.server()
    let signer = try URLSigner(server)
    try Self.put(server, "a", "hello")
    func status(_ seconds: String, at moment: Date = Date()) throws -> Int {
      try server.request("GET", signer.v4("GET", "/bucket/a", at: moment, secondsText: seconds)).status
    }
    for seconds in ["604800", "1000"] { #expect(try status(seconds) == 200, "\(seconds)") }
    for seconds in ["604801", "0", "-1", "", "+600", "0600", "6e2", "600.0", " 600", "9223372036854775808", "0x258"] {
      #expect(try status(seconds) == 400, "\(seconds)")
    }
    // The signer's clock may be fast by 15 minutes.
    #expect(try status("600", at: Date() + 800) == 200)
    #expect(try status("600", at: Date() + 1000) == 403)
    #expect(try status("600", at: Date() - 590) == 200)
    #expect(try status("600", at: Date() - 610) == 400)
    for expires in ["0", "-1", "", "1e10", "+99999999999", "099999999999", " 99999999999", "99999999999999999999"] {
      let reply = try server.request("GET", signer.v2("GET", "/bucket/a", expires: expires))
      #expect(reply.status == 400, "\(expires): \(reply.text)")
    }
    #expect(try server.request("GET", signer.v2("GET", "/bucket/a", expires: "99999999999")).status == 200)
  }

  @Test func otherKeysAreRefused() throws {
    let server = try Self.server()
    let other = try Self.server()
    let signer = try URLSigner(server)
    let second = try URLSigner(server, name: "second")
    let foreign = try URLSigner(other)
    try Self.put(server, "a", "hello")
    func statuses(_ signer: URLSigner) throws -> [Int] {
      [
        try server.request("GET", signer.v4("GET", "/bucket/a")).status,
        try server.request("GET", signer.v2("GET", "/bucket/a", until: Date() + 60)).status,
      ]
    }
    #expect(try statuses(signer) == [200, 200])
    #expect(try statuses(second) == [200, 200])
    #expect(try statuses(URLSigner(email: signer.email, key: second.key)) == [403, 403])
    #expect(try statuses(foreign) == [403, 403])
    #expect(try statuses(URLSigner(email: signer.email.uppercased(), key: signer.key)) == [403, 403])
    for email in ["", "signer", "nobody@p.iam.gserviceaccount.com", signer.email + "/", "ann@example.com"] {
      for status in try statuses(URLSigner(email: email, key: signer.key)) {
        #expect([400, 403].contains(status), "\(email)")
      }
    }
    // A URL that was made before, and one that is made after the key was revoked. A new key of the same name does not
    // revive them.
    let before = try signer.v4("GET", "/bucket/a")
    let owner = Self.owner(server)
    #expect(try server.call("DELETE", "/hearth/v1/keys/signer", headers: owner).status == 200)
    #expect(try statuses(signer) == [403, 403])
    let renewed = try URLSigner(server)
    #expect(renewed.email == signer.email)
    #expect(try statuses(renewed) == [200, 200])
    #expect(try statuses(signer) == [403, 403])
    #expect(try server.request("GET", before).status == 403)
    #expect(try statuses(second) == [200, 200])
  }

  /// The signature covers the header but not the body of the request that starts a resumable upload.
  @Test(arguments: [true, false]) func bodyOfAResumableStartHasNoRights(isVersion4: Bool) throws {
    let server = try Self.server()
    let signer = try URLSigner(server)
    let headers = [("content-type", "text/plain"), ("x-goog-resumable", "start")]
    let url =
      isVersion4
      ? try signer.v4("POST", "/bucket/a", headers)
      : try signer.v2("POST", "/bucket/a", type: "text/plain", [headers[1]], until: Date() + 600)
    let body = """
      {"contentType": "text/html", "contentDisposition": "inline", "cacheControl": "public",
      "metadata": {"firebaseStorageDownloadTokens": "known", "k": "v"}}
      """
    let begun = try server.request(
      "POST", url, body, headers: headers + [("X-Upload-Content-Type", "text/html")])
    #expect(begun.status == 201, "\(begun.text)")
    let location = try #require(begun.header("location"))
    let made = try server.request("PUT", String(location.dropFirst("http://localhost".count)), "content")
    #expect(made.status == 200, "\(made.text)")
    #expect(made.json("contentType") == "text/plain", "\(made.text)")
    for member in ["metadata", "contentDisposition", "cacheControl"] {
      #expect((made.json as? [String: Any])?[member] == nil, "\(made.text)")
    }
    #expect(try server.call("GET", "/v0/b/bucket/o/a?alt=media&token=known").status == 403)
  }

  /// An upload that a signed URL began ends with the key, although its later requests carry no signature.
  @Test func revokedKeysEndTheirUploads() throws {
    let server = try Self.server()
    let start = ("x-goog-resumable", "start")
    let owner = Self.owner(server)
    func begin(_ signer: URLSigner, _ name: String) throws -> String {
      let begun = try server.request("POST", try signer.v4("POST", "/bucket/\(name)", [start]), "", headers: [start])
      return String(try #require(begun.header("location"), "\(begun.text)").dropFirst("http://localhost".count))
    }
    func put(_ target: String, _ range: String, _ body: String) throws -> Int {
      try server.request("PUT", target, body, headers: [("Content-Range", range)]).status
    }
    let (first, second) = (try URLSigner(server), try URLSigner(server, name: "second"))
    let (ending, continuing) = (try begin(first, "a"), try begin(second, "b"))
    for target in [ending, continuing] { #expect(try put(target, "bytes 0-1/4", "01") == 308) }
    #expect(try server.call("DELETE", "/hearth/v1/keys/signer", headers: owner).status == 200)
    #expect(try put(ending, "bytes 2-3/4", "23") == 403)
    #expect(try put(continuing, "bytes 2-3/4", "23") == 200)
    #expect(try server.request("GET", try second.v4("GET", "/bucket/a")).status == 404)
    #expect(try server.request("GET", try second.v4("GET", "/bucket/b")).text == "0123")
  }
}
