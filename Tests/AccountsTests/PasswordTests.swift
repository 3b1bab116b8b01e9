import Accounts
import Glibc
import Synchronization
import Testing
import TestSupport
import WireFormat

@Suite struct PasswordTests {
  @Test func argon2AcceptsOnlyTheRightPassword() throws {
    let passwords = try Passwords(.least)
    let hash = try passwords.hash("correct horse 😀")
    #expect(hash.text.hasPrefix("$argon2id$v=19$"))
    #expect(try passwords.hash("correct horse 😀") != hash)
    #expect(passwords.accepts("correct horse 😀", for: hash))
    for wrong in ["", "correct horse", "correct horse 😀 ", "correct horse 😀\0"] {
      #expect(!passwords.accepts(wrong, for: hash), "\(wrong)")
    }
    #expect(!passwords.accepts("anything", for: nil))
    #expect(!passwords.accepts(String(repeating: "x", count: 5000), for: hash))
    #expect(try passwords.replacement(of: hash, "correct horse 😀") == nil)
    #expect(try Passwords(PasswordWork(passes: 2, memoryBytes: 16 << 10)).replacement(of: hash, "x") != nil)
    let zero = try passwords.hash("ab\0cdef")
    #expect(passwords.accepts("ab\0cdef", for: zero))
    #expect(!passwords.accepts("ab\0cdeg", for: zero))
  }

  /// Hashes made by others: OpenSSL, Python's hashlib and bcrypt, and Firebase's published sample.
  static let imported: [(parameters: String, password: String, salt: String, hash: String)] = [
    (
      #"""
      {"hashAlgorithm": "SCRYPT", "signerKey":
      "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==",
      "saltSeparator": "Bw==", "rounds": 8, "memoryCost": 14}
      """#, "user1password", "42xEC+ixf3L2lw==",
      "lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ=="
    ),
    (
      #"""
      {"hashAlgorithm": "STANDARD_SCRYPT", "cpuMemCost": 1024, "blockSize": 8, "parallelization": 2, "dkLen": 48}
      """#, "pässword", "c2FsdHlzYWx0IQ==",
      "PalPEx3B3ep6NSflXsLLepZ6S8OZTjuCC2W9QhZRrdVx6vyWTB3rR+pZzEHJZGZm"
    ),
    (
      #"""
      {"hashAlgorithm": "PBKDF2_SHA256", "rounds": 1000}
      """#, "pässword", "c2FsdHlzYWx0IQ==",
      "Fqmq6gUM4FVMxe2DCLM+M03lQgEdXSfJnndEChx/1Jk="
    ),
    (
      #"""
      {"hashAlgorithm": "PBKDF_SHA1", "rounds": "500"}
      """#, "pässword", "c2FsdHlzYWx0IQ==",
      "cerJp6bvV4vAKcwMIIa6WhvhCh4="
    ),
    (
      #"""
      {"hashAlgorithm": "HMAC_SHA256", "signerKey": "c2lnbmVyIGtleQ=="}
      """#, "pässword", "c2FsdHlzYWx0IQ==",
      "BYZL/zT0Z1OTn4X2qxlqC5O5D1vxKL3GFZKlgZY4VA0="
    ),
    (
      #"""
      {"hashAlgorithm": "HMAC_SHA512", "signerKey": "c2lnbmVyIGtleQ==", "passwordHashOrder": "SALT_AND_PASSWORD"}
      """#, "pässword", "c2FsdHlzYWx0IQ==",
      "wMvv+CiDAe3M5ZuU77dUCUtWYPsIuYuTSmnFfH4AiJtP3WLo1HsJwqgdyw2feHkK4czIrMqc5zroWeYDqLzFAQ=="
    ),
    (
      #"""
      {"hashAlgorithm": "HMAC_SHA1", "signerKey": "c2lnbmVyIGtleQ==", "passwordHashOrder": "PASSWORD_AND_SALT"}
      """#, "pässword", "c2FsdHlzYWx0IQ==",
      "nQYwZyrHaoH3APvYXiGT6bl3q8g="
    ),
    (
      #"""
      {"hashAlgorithm": "HMAC_MD5", "signerKey": "c2lnbmVyIGtleQ=="}
      """#, "pässword", "c2FsdHlzYWx0IQ==",
      "Z3m9D1Ksv8i8/OkMOyGjTw=="
    ),
    (
      #"""
      {"hashAlgorithm": "MD5", "rounds": 0, "passwordHashOrder": "PASSWORD_AND_SALT"}
      """#, "pässword", "c2FsdHlzYWx0IQ==",
      "zFV1ADPijoF+JS2tWaoiyw=="
    ),
    (
      #"""
      {"hashAlgorithm": "SHA256", "rounds": 5, "passwordHashOrder": "SALT_AND_PASSWORD"}
      """#, "pässword", "c2FsdHlzYWx0IQ==",
      "Dxr7b4k7OfWzSdS94NehfKwiAoJ6Xm8WOXX6JyoVqBY="
    ),
    (
      #"""
      {"hashAlgorithm": "SHA1", "rounds": 1, "passwordHashOrder": "PASSWORD_AND_SALT"}
      """#, "pässword", "c2FsdHlzYWx0IQ==",
      "HOXyyquFUJgcQqpgn66xr4bPa2I="
    ),
    (
      #"""
      {"hashAlgorithm": "SHA512", "passwordHashOrder": "PASSWORD_AND_SALT"}
      """#, "pässword", "c2FsdHlzYWx0IQ==",
      "d0SQ7axLbxug7t3Y/J4osf/KrVrYO/OzRwS43FU9mJ189wO1mWI2/MuoyfQ7HFoHwcvdmzuLbOw2b5gpYulm1A=="
    ),
    (
      #"""
      {"hashAlgorithm": "BCRYPT"}
      """#, "pässword", "",
      "JDJiJDA0JGFiY2RlZmdoaWprbG1ub3BxcnN0dXVtMTc0ZUZlb1RqMERIbXR1dWVGYVMzV2RlNFA3d0hH"
    ),
  ]

  @Test(arguments: imported.indices)
  func acceptsImportedHashes(index: Int) throws {
    let sample = Self.imported[index]
    let parameters = try HashParameters(JSONTree(parsing: Array(sample.parameters.utf8)))
    let salt = try #require(Base64.decode(sample.salt))
    let bytes = try #require(Base64.decode(sample.hash))
    let hash = try parameters.hash(bytes, salt: salt)
    let passwords = try Passwords(.least)
    #expect(passwords.accepts(sample.password, for: hash))
    #expect(!passwords.accepts(sample.password + "x", for: hash))
    #expect(!passwords.accepts("", for: hash))
    // The stored text contains its parameters. It is replaced once the password is known.
    let stored = try #require(PasswordHash(text: hash.text))
    #expect(passwords.accepts(sample.password, for: stored))
    let new = try #require(try passwords.replacement(of: stored, sample.password))
    #expect(new.text.hasPrefix("$argon2id$"))
    #expect(passwords.accepts(sample.password, for: new))
    // An exported hash can be imported without parameters.
    let again = try HashParameters(JSONTree(parsing: Array("{}".utf8))).hash(Array(hash.text.utf8), salt: [])
    #expect(again == hash)
  }

  /// The requests that importUsers of firebase-admin's integration tests sends, for the password `password` with the salt
  /// `NaCl`. They name no order of the hash. A digest can be hexadecimal text.
  @Test(arguments: [
    (
      #"{"hashAlgorithm": "MD5", "rounds": 0}"#,
      "YtGffn3ctZRnKHdtJeQQ7Q=="
    ),
    (
      #"{"hashAlgorithm": "MD5", "rounds": 0}"#,
      "NjJkMTlmN2U3ZGRjYjU5NDY3Mjg3NzZkMjVlNDEwZWQ="
    ),
    (
      #"{"hashAlgorithm": "SHA1", "rounds": 1}"#,
      "4ynUBUr/OQVsCQQZk/6FmoYdJy8="
    ),
    (
      #"{"hashAlgorithm": "SHA1", "rounds": 1}"#,
      "ZTMyOWQ0MDU0YWZmMzkwNTZjMDkwNDE5OTNmZTg1OWE4NjFkMjcyZg=="
    ),
    (
      #"{"hashAlgorithm": "SHA256", "rounds": 1}"#,
      "sgq3SqJUn34ToOiGy0RxzC5w/NLOgHXA7mSDq7phMvM="
    ),
    (
      #"{"hashAlgorithm": "SHA256", "rounds": 1}"#,
      "YjIwYWI3NGFhMjU0OWY3ZTEzYTBlODg2Y2I0NDcxY2MyZTcwZmNkMmNlODA3NWMwZWU2NDgzYWJiYTYxMzJmMw=="
    ),
    (
      #"{"hashAlgorithm": "SHA512", "rounds": 1}"#,
      "2p0svfOgDTflOF7HK5wbHP+05l4lkdV8P+FFq+p6aHPQS7uBGa9TyGc8DfxZsfkcaV2Mfod35WxAzaj5yBEKYw=="
    ),
    (
      #"{"hashAlgorithm": "SHA512", "rounds": 1}"#,
      "ZGE5ZDJjYmRmM2EwMGQzN2U1Mzg1ZWM3MmI5YzFiMWNmZmI0ZTY1ZTI1OTFkNTdjM2ZlMTQ1YWJlYTdhNjg3M2QwNGJiYjgxMTlhZjUzYzg2NzNjMGRmYzU5YjFmOTFjNjk1ZDhjN2U4Nzc3ZTU2YzQwY2RhOGY5YzgxMTBhNjM="
    ),
    (
      #"{"hashAlgorithm": "HMAC_MD5", "signerKey": "c2VjcmV0"}"#,
      "4tZGVrzeu9LZ9eWZ03FrLg=="
    ),
    (
      #"{"hashAlgorithm": "HMAC_SHA1", "signerKey": "c2VjcmV0"}"#,
      "tSjltw8SZxad1AY6k8wDYCwUeyI="
    ),
    (
      #"{"hashAlgorithm": "HMAC_SHA256", "signerKey": "c2VjcmV0"}"#,
      "C5WKh+Qa5RkMlq+h5DX5XKsBOsQt/DEKEaUBAMQqrlI="
    ),
    (
      #"{"hashAlgorithm": "HMAC_SHA512", "signerKey": "c2VjcmV0"}"#,
      "yoFsygT+IMma1lMv+IqBvfHM1DCminat6m9ku6Re5nl8QSy9Z3BwPG9FnejSRcu99tK4xSVVkY6I9euOf8nmQA=="
    ),
    (
      #"{"hashAlgorithm": "STANDARD_SCRYPT", "cpuMemCost": 1024, "parallelization": 16, "blockSize": 8, "dkLen": 64}"#,
      "/bq+HJ00cgB4VucZDQHp/nxq18vII3gw53N2Y0s3MWIurzDZLiKjiG/xCSedmDDaxyevuUqD7m2DYMvfoswGQA=="
    ),
    (
      #"{"hashAlgorithm": "PBKDF2_SHA256", "rounds": 100000}"#,
      "5VnqZoKMOie1mhCQGRw7u1FV5Kv8Yb8uxEArtVAl0vSlwAQqXe8VxejCRe5enxUyNN4OWQ60PGRIVPZzEvcQtw=="
    ),
    (
      #"{"hashAlgorithm": "PBKDF_SHA1", "rounds": 1000}"#,
      "lyyzCFlAUpkzVJDKKPSl1PyJGrk="
    ),
    (
      #"{"hashAlgorithm": "SCRYPT", "signerKey": "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==", "rounds": 8, "memoryCost": 14, "saltSeparator": "Bw=="}"#,
      "V358E8LdWJXAO7muq0CufVpEOXaj8aFiC7T/rcaGieN04q/ZPJ08WhJEHGjj9lz/2TT+/86N5VjVoc5DdBhBiw=="
    ),
  ])
  func acceptsHashesOfAdminClients(parameters: String, hash: String) throws {
    let parameters = try HashParameters(JSONTree(parsing: Array(parameters.utf8)))
    let hash = try parameters.hash(try #require(Base64.decode(hash)), salt: Array("NaCl".utf8))
    let passwords = try Passwords(.least)
    #expect(passwords.accepts("password", for: hash))
    #expect(!passwords.accepts("passwore", for: hash))
    #expect(PasswordHash(text: hash.text) == hash && hash.salt == Array("NaCl".utf8))
  }

  @Test func hashesOfTheServerHaveASalt() throws {
    let passwords = try Passwords(.least)
    let salts = try (0..<2).map { _ in try #require(try passwords.hash("secret-1").salt) }
    #expect(salts.allSatisfy { $0.count == 16 } && salts[0] != salts[1])
  }

  @Test(
    arguments: [
      (#"{"hashAlgorithm": "ROT13"}"#, .invalidHashAlgorithm), (#"{}"#, .missingHashAlgorithm),
      (#"{"hashAlgorithm": "SCRYPT", "rounds": 8, "memoryCost": 14}"#, .invalidHashParameter),
      (#"{"hashAlgorithm": "SCRYPT", "signerKey": "AAAA", "rounds": 9, "memoryCost": 14}"#, .invalidHashParameter),
      (
        #"{"hashAlgorithm": "STANDARD_SCRYPT", "cpuMemCost": 1048576, "blockSize": 64, "parallelization": 1}"#,
        .invalidHashParameter
      ),
      (
        #"{"hashAlgorithm": "STANDARD_SCRYPT", "cpuMemCost": 1000, "blockSize": 8, "parallelization": 1}"#,
        .invalidHashParameter
      ),
      (#"{"hashAlgorithm": "PBKDF2_SHA256", "rounds": 100000000}"#, .invalidHashParameter),
      (#"{"hashAlgorithm": "PBKDF2_SHA256", "rounds": -1}"#, .invalidHashParameter),
      (
        #"{"hashAlgorithm": "ARGON2", "argon2Parameters": {"iterations": 3, "memoryCostKib": 100000000}}"#,
        .invalidHashParameter
      ),
      (
        #"{"hashAlgorithm": "ARGON2", "argon2Parameters": {"iterations": 3, "memoryCostKib": 64, "parallelism": 4}}"#,
        .invalidHashParameter
      ),
      (#"{"hashAlgorithm": "BCRYPT"}"#, .invalidHashParameter),
      (
        #"{"hashAlgorithm": "STANDARD_SCRYPT", "cpuMemCost": 131072, "blockSize": 8, "parallelization": 16}"#,
        .invalidHashParameter
      ),
      (
        #"{"hashAlgorithm": "ARGON2", "argon2Parameters": {"iterations": 16, "memoryCostKib": 262144}}"#,
        .invalidHashParameter
      ),
    ] as [(String, AccountError.Code)])
  func refusesExpensiveOrIncompleteHashes(parameters: String, code: AccountError.Code) throws {
    do {
      let parameters = try HashParameters(JSONTree(parsing: Array(parameters.utf8)))
      _ = try parameters.hash([UInt8](repeating: 1, count: 32), salt: [1, 2, 3, 4, 5, 6, 7, 8])
      Issue.record("accepted")
    } catch let error as AccountError {
      #expect(error.code == code, "\(error.message)")
    }
  }

  @Test(arguments: ["{}", #"{"hashAlgorithm": "HMAC_MD5", "signerKey": "AAAA"}"#, #"{"hashAlgorithm": "BCRYPT"}"#])
  func refusesExpensiveArgon2Texts(parameters: String) throws {
    let parameters = try HashParameters(JSONTree(parsing: Array(parameters.utf8)))
    let end = "p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA"
    for work in ["m=65536,t=200", "m=4194304,t=1", "m=262144,t=16", "m=65536,t=0", "m=65536,t=99999999999999999999"] {
      let text = "$argon2id$v=19$\(work),\(end)"
      #expect(PasswordHash(text: text) == nil, "\(text)")
      do {
        _ = try parameters.hash(Array(text.utf8), salt: [])
        Issue.record("accepted \(text)")
      } catch {
        #expect(error.code == .invalidHashParameter, "\(error.message)")
      }
    }
    #expect(try parameters.hash(Array("$argon2id$v=19$m=65536,t=3,\(end)".utf8), salt: []).text.hasSuffix(end))
  }

  @Test func limitsTheCostOfLongPBKDF2Hashes() throws {
    let parameters = try HashParameters(
      JSONTree(parsing: Array(#"{"hashAlgorithm": "PBKDF2_SHA256", "rounds": 120000}"#.utf8)))
    #expect(throws: AccountError.self) { try parameters.hash([UInt8](repeating: 1, count: 1024), salt: [1]) }
    _ = try parameters.hash([UInt8](repeating: 1, count: 64), salt: [1])
  }

  /// Compares processor time, which other threads hardly affect.
  @Test func wrongPasswordsTakeAsLongAsUnknownAccounts() throws {
    let passwords = try Passwords(PasswordWork(passes: 4, memoryBytes: 8 << 20))
    let md5 = try HashParameters(JSONTree(parsing: Array(#"{"hashAlgorithm": "MD5"}"#.utf8)))
    let weak = try Passwords(.least).hash("right")
    func cost(_ hash: PasswordHash?) -> Int {
      (0..<3).map { _ in
        let from = clock()
        #expect(!passwords.accepts("wrong", for: hash))
        return clock() - from
      }.min() ?? 0
    }
    func clock() -> Int {
      var time = timespec()
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
      return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
    let nobody = cost(nil)
    for hash in [try md5.hash([UInt8](repeating: 1, count: 16), salt: []), weak] {
      let taken = cost(hash)
      #expect(taken * 2 > nobody, "\(taken) ns, \(nobody) ns for an unknown account")
    }
  }

  @Test(arguments: [
    "", "x", "$", "$$$$", "$argon2id$\(String(repeating: "x", count: 200))",
    "$2b$31$\(String(repeating: "a", count: 53))",
    "$2b$04$short", "$scrypt$n=16,r=8,p=1$AA==$AA==", "$scrypt$n,r=8,p=1$AA==$AAAAAAAAAAAAAAAA",
    "$pbkdf2$d=ROT13,r=1$AA==$AAAAAAAAAAAAAAAA", "$digest$d=MD5,r=0,o=ps$AA==$AAAAAAAAAAAAAAAA",
    "$firebase-scrypt$k=AAAA,s=,r=8,m=30$AA==$AAAAAAAAAAAAAAAA",
  ])
  func refusesDamagedHashTexts(text: String) {
    #expect(PasswordHash(text: text) == nil)
  }
}

@Suite struct SignInThrottleTests {
  @Test func throttledAttemptsRecoverWithTime() {
    let clock = SteppedMicroseconds()
    let throttle = SignInThrottle(now: { clock.now })
    for _ in 0..<10 {
      #expect(throttle.allows(.accountFromPlace, "ann 1.2.3.4"))
      throttle.count(.accountFromPlace, "ann 1.2.3.4")
    }
    #expect(!throttle.allows(.accountFromPlace, "ann 1.2.3.4"))
    #expect(throttle.allows(.accountFromPlace, "bob 1.2.3.4"))
    #expect(throttle.allows(.strangers, "ann 1.2.3.4"))
    clock.advance(seconds: 89)
    #expect(!throttle.allows(.accountFromPlace, "ann 1.2.3.4"))
    clock.advance(seconds: 2)
    #expect(throttle.allows(.accountFromPlace, "ann 1.2.3.4"))
    throttle.count(.accountFromPlace, "ann 1.2.3.4")
    #expect(!throttle.allows(.accountFromPlace, "ann 1.2.3.4"))
    throttle.reset(.accountFromPlace, "ann 1.2.3.4")
    #expect(throttle.allows(.accountFromPlace, "ann 1.2.3.4"))
  }

  @Test func projectsShareTheLimitOfAPlace() {
    let clock = SteppedMicroseconds()
    let places = PlaceThrottles(now: { clock.now })
    let projects = (0..<2).map { _ in SignInThrottle(now: { clock.now }, places: places.users) }
    for guess in 0..<SignInThrottle.guessesOfPlaceMax {
      #expect(projects[guess % 2].take(.place, "192.0.2.1"))
    }
    for project in projects { #expect(!project.allows(.place, "192.0.2.1") && project.allows(.place, "192.0.2.2")) }
    #expect(places.operators.allows(.place, "192.0.2.1"))
    // The limits of accounts are those of each project.
    for _ in 0..<SignInThrottle.guessesFromPlaceMax { projects[0].count(.accountFromPlace, "ann") }
    #expect(!projects[0].allows(.accountFromPlace, "ann") && projects[1].allows(.accountFromPlace, "ann"))
    projects[1].giveBack(.place, "192.0.2.1")
    #expect(projects[0].allows(.place, "192.0.2.1"))
    clock.advance(seconds: Int64(SignInThrottle.guessesRestoreSeconds))
    projects[0].reset(.place, "192.0.2.1")
    #expect(projects[1].allows(.place, "192.0.2.1"))
  }

  @Test func manySubjectsDoNotEvictTheHeaviest() {
    let clock = SteppedMicroseconds()
    let throttle = SignInThrottle(now: { clock.now })
    for _ in 0..<10 { throttle.count(.accountFromPlace, "worst") }
    for number in 0..<(SignInThrottle.subjectsMax + 10) { throttle.count(.place, "\(number)") }
    #expect(!throttle.allows(.accountFromPlace, "worst"))
  }
}

@Suite struct KnownPlacesTests {
  @Test(arguments: [
    ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("2001:db8::1", "2001:0db8::"),
    ("2001:db8:0:0:ffff::2", "2001:db8::9"), ("unknown", "unknown"),
  ])
  func anIPv6NetworkIsOnePlace(address: String, other: String) {
    #expect(KnownPlaces.place(of: address) == KnownPlaces.place(of: other))
  }

  @Test func otherNetworksAreOtherPlaces() {
    #expect(KnownPlaces.place(of: "2001:db8:0:1::1") != KnownPlaces.place(of: "2001:db8:0:2::1"))
    #expect(KnownPlaces.place(of: "192.0.2.1") != KnownPlaces.place(of: "192.0.2.2"))
  }

  @Test func placesAreForgottenWithTimeAndBeyondTheirNumber() {
    let clock = SteppedMicroseconds()
    let known = KnownPlaces(now: { clock.now })
    for place in ["a", "b", "c", "d", "a", "e"] { known.note(place, of: "ann") }
    #expect(["a", "c", "d", "e"].allSatisfy { known.contains($0, of: "ann") })
    #expect(!known.contains("b", of: "ann"))
    #expect(!known.contains("a", of: "bob"))
    clock.advance(seconds: KnownPlaces.placeSeconds - 1)
    #expect(known.contains("a", of: "ann"))
    known.note("a", of: "ann")
    clock.advance(seconds: 1)
    #expect(known.contains("a", of: "ann"))
    #expect(!known.contains("e", of: "ann"))
    known.forget("ann")
    #expect(!known.contains("a", of: "ann"))
  }

  @Test func theAccountsUnusedForLongestAreForgotten() {
    let clock = SteppedMicroseconds()
    let known = KnownPlaces(now: { clock.now })
    for number in 0..<KnownPlaces.accountsMax {
      clock.advance(seconds: 1)
      known.note("p", of: "\(number)")
    }
    known.note("p", of: "new")
    #expect(known.accountCount == KnownPlaces.accountsMax / 2 + 1)
    #expect(!known.contains("p", of: "0"))
    #expect(known.contains("p", of: "\(KnownPlaces.accountsMax - 1)"))
    #expect(known.contains("p", of: "new"))
  }
}

/// A clock in microseconds that moves only when a test advances it.
final class SteppedMicroseconds: Sendable {
  private let time = Atomic<Int64>(1_700_000_000_000_000)
  var now: Int64 { time.load(ordering: .relaxed) }
  func advance(seconds: Int64) { time.add(seconds * 1_000_000, ordering: .relaxed) }
}
