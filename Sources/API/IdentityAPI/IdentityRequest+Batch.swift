import GatewayCore
import Accounts
import Basics
import Dispatch
import DocumentModel
import Synchronization
import WireFormat

/// Operations on many accounts at once, for administrators.
extension IdentityRequest {
  func batchGet() throws -> Response {
    let limit = try count("maxResults", fields["maxResults"], in: 1...1000, or: 20)
    let token = parameters.value("nextPageToken") ?? text("nextPageToken")
    let users = try accounts.users.users(after: token.flatMap { $0.isEmpty ? nil : $0 }, limit: limit)
    return response("DownloadAccountResponse") { json in
      if !users.isEmpty { append(users, "users", to: &json) }
      if users.count == limit, let last = users.last { json.text("nextPageToken", last.uid) }
    }
  }

  private func append(_ users: [User], _ name: StaticString, to json: inout JSONWriter) {
    json.key(name)
    json.beginArray()
    for user in users { user.append(to: &json, for: .admin) }
    json.endArray()
  }

  private func count(
    _ name: StaticString, _ field: JSONTree?, in range: ClosedRange<Int>, or standard: Int
  ) throws -> Int {
    guard let number = parameters.value(name).map({ Int($0) ?? -1 }) ?? field?.int64.map({ Int($0) }) else {
      return standard
    }
    guard range.contains(number) else { throw AccountError(.invalidPageSelection) }
    return number
  }

  func batchDelete() throws -> Response {
    let ids = texts("localIds")
    guard (1...1000).contains(ids.count) else { throw AccountError(.localIDListExceedsLimit) }
    let isForced = fields["force"]?.flag ?? false
    var errors: [(index: Int, uid: String)] = []
    if !isForced {
      for (index, uid) in ids.enumerated() {
        if let user = try accounts.users.user(uid), !user.isDisabled { errors.append((index, uid)) }
      }
    }
    let kept = Set(errors.map { Array($0.uid.utf8) })
    for uid in try accounts.remove(ids.filter { !kept.contains(Array($0.utf8)) }) { audit(.deleted, uid) }
    return response(nil) { json in
      guard !errors.isEmpty else { return }
      json.key("errors")
      json.beginArray()
      for error in errors {
        json.beginObject()
        json.key("index")
        json.number(error.index)
        json.text("localId", error.uid)
        json.text("message", AccountError(.notDisabled, "Disable the account before batch deletion.").message)
        json.endObject()
      }
      json.endArray()
    }
  }

  // MARK: Import

  func batchCreate() throws -> Response {
    let records = fields["users"]?.elements ?? []
    guard !records.isEmpty else { throw AccountError(.missingUserAccount) }
    guard records.count <= Self.importedMax else {
      throw AccountError(.invalidArgument, "A batch may have at most \(Self.importedMax) users.")
    }
    let parameters = try HashParameters(fields)
    let isChecked = fields["sanityCheck"]?.flag ?? false
    let overwrites = fields["allowOverwrite"]?.flag ?? true
    var errors: [(index: Int, message: String)] = []
    var users: [(index: Int, user: User)] = []
    for (index, record) in records.enumerated() {
      do { users.append((index, try imported(record, parameters))) } catch let error as AccountError {
        errors.append((index, error.message))
      }
    }
    if isChecked { try refuseDuplicates(users.map(\.user)) }
    try accounts.users.write { transaction in
      for (index, user) in users {
        do {
          if overwrites { try transaction.upsert(user) } else { try transaction.insert(user) }
        } catch let error as AccountError {
          errors.append((index, error.message))
        }
      }
    }
    audit(.imported) { $0.count = records.count - errors.count }
    return response("UploadAccountResponse") { json in
      guard !errors.isEmpty else { return }
      json.key("error")
      json.beginArray()
      for error in errors.sorted(by: { $0.index < $1.index }) {
        json.beginObject()
        json.key("index")
        json.number(error.index)
        json.text("message", error.message)
        json.endObject()
      }
      json.endArray()
    }
  }

  /// The largest number of users in one batch.
  static let importedMax = 1000

  private func refuseDuplicates(_ users: [User]) throws {
    var emails = Set<[UInt8]>()
    var identities = Set<[UInt8]>()
    var ids = Set<[UInt8]>()
    for user in users {
      guard ids.insert(Array(user.uid.utf8)).inserted else { throw AccountError(.duplicateLocalID, user.uid) }
      if let email = user.email, !emails.insert(Array(email.utf8)).inserted {
        throw AccountError(.duplicateEmail, email)
      }
      for provider in user.providers
      where !identities.insert(Array((provider.providerID + "\0" + provider.rawID).utf8)).inserted {
        throw AccountError(.duplicateRawID, provider.rawID)
      }
    }
  }

  private func imported(_ record: JSONTree, _ parameters: HashParameters) throws -> User {
    guard let uid = record["localId"]?.text else { throw AccountError(.missingLocalID) }
    let now = accounts.nowMilliseconds
    var user = User(uid: try UserFields.uid(uid), createdAt: min(record["createdAt"]?.int64 ?? now, now))
    func text(_ field: StaticString) throws -> String? {
      try record[field]?.text.flatMap { $0.isEmpty ? nil : try UserFields.text($0, field) }
    }
    user.email = try text("email").map(UserFields.email)
    user.isEmailVerified = record["emailVerified"]?.flag ?? false
    user.phoneNumber = try text("phoneNumber").map(UserFields.phoneNumber)
    user.displayName = try text("displayName")
    user.photoURL = try text("photoUrl")
    user.isDisabled = record["disabled"]?.flag ?? false
    user.lastLoginAt = record["lastLoginAt"]?.int64 ?? record["lastSignedInAt"]?.int64
    user.validSince = record["validSince"]?.int64 ?? user.validSince
    user.customAttributes = try record["customAttributes"]?.text.flatMap { try UserFields.customClaims($0) }
    user.hasEmailLinkSignIn = record["emailLinkSignin"]?.flag ?? false
    user.isCustomAuth = record["customAuth"]?.flag ?? false
    user.initialEmail = try text("initialEmail")
    user.passwordUpdatedAt = record["passwordUpdatedAt"]?.int64.map { min($0, now) }
    for info in record["providerUserInfo"]?.elements ?? [] {
      if info["providerId"]?.text == "phone", user.phoneNumber == nil {
        user.phoneNumber = try (info["phoneNumber"] ?? info["rawId"])?.text.map(UserFields.phoneNumber)
      }
      if let provider = User.LinkedProvider(info) { user.link(provider) }
    }
    if let password = record["rawPassword"]?.text {
      user.setPassword(try hashInTurn(password), now: now)
    } else if let hash = try text("passwordHash") {
      if let password = Self.emulatorPassword(hash), accounts.mode == .emulator {
        user.setPassword(try hashInTurn(password), now: now)
      } else {
        guard let bytes = Base64.decode(hash), let salt = Base64.decode(record["salt"]?.text ?? "") else {
          throw AccountError(.invalidHashParameter, "passwordHash and salt must be base64")
        }
        user.passwordHash = try parameters.hash(bytes, salt: salt)
        user.passwordUpdatedAt = user.passwordUpdatedAt ?? now
      }
    }
    return user
  }

  /// The password in the text that other emulators store instead of a hash: `fakeHash:salt=S:password=P`.
  private static func emulatorPassword(_ hash: String) -> String? {
    guard hash.hasPrefix("fakeHash:salt=") else { return nil }
    let mark = Array(":password=".utf8)
    let bytes = Array(hash.utf8)
    guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: mark) }) else { return nil }
    return String(decoding: bytes[(start + mark.count)...], as: UTF8.self)
  }

  /// Hashes a password on the hashing threads, one queue entry per password, so that sign-ins do not wait for a
  /// whole batch.
  private func hashInTurn(_ password: String) throws -> PasswordHash {
    let outcome = Mutex<Result<PasswordHash, AccountError>?>(nil)
    let done = DispatchSemaphore(value: 0)
    let passwords = toolkit.passwords
    let checked = try UserFields.newPassword(password)
    let isTaken = toolkit.passwordQueue.run {
      let made = Result { () throws(AccountError) in try passwords.hash(checked) }
      outcome.withLock { $0 = made }
      done.signal()
    }
    guard isTaken else {
      throw AccountError(.quotaExceeded, "Too many passwords are waiting to be hashed. Try again later.")
    }
    done.wait()
    return try outcome.withLock { $0 }?.get() ?? passwords.hash(checked)
  }

  // MARK: Queries

  func query() throws -> Response {
    let limit = try count("limit", fields["limit"], in: 1...500, or: 500)
    let offset = max(0, Int(fields["offset"]?.int64 ?? 0))
    let expressions = fields["expression"]?.elements ?? []
    let sortBy = text("sortBy") ?? "USER_ID"
    let isDescending = text("order") == "DESC"
    var found: [User] = []
    var last: String?
    repeat {
      let page = try accounts.users.users(after: last, limit: 1000)
      found += page.filter { user in expressions.isEmpty || expressions.contains { user.matches($0) } }
      last = page.count == 1000 ? page.last?.uid : nil
      guard found.count <= Self.queriedMax else {
        throw AccountError(.invalidArgument, "More than \(Self.queriedMax) users match. Use batchGet to read them.")
      }
    } while last != nil
    found.sort { a, b in
      let isBefore = a.precedes(b, by: sortBy)
      return isBefore == b.precedes(a, by: sortBy)
        ? a.uid.utf8.lexicographicallyPrecedes(b.uid.utf8) : isBefore != isDescending
    }
    if isDescending, sortBy == "USER_ID" { found.reverse() }
    return response(nil) { json in
      json.text("recordsCount", "\(found.count)")
      let page = Array(found.dropFirst(offset).prefix(limit))
      if fields["returnUserInfo"]?.flag ?? true, !page.isEmpty { append(page, "userInfo", to: &json) }
    }
  }

  /// The largest number of users that a query sorts in memory.
  private static let queriedMax = 100_000
}

extension User {
  fileprivate func matches(_ expression: JSONTree) -> Bool {
    func equal(_ field: StaticString, _ value: String?) -> Bool? {
      guard let wanted = expression[field]?.text else { return nil }
      return value?.utf8.elementsEqual(wanted.utf8) ?? false
    }
    let email = expression["email"]?.text.map { self.email?.utf8.elementsEqual($0.lowercased().utf8) ?? false }
    let conditions = [email, equal("userId", uid), equal("phoneNumber", phoneNumber)].compactMap { $0 }
    return !conditions.isEmpty && conditions.allSatisfy { $0 }
  }

  fileprivate func precedes(_ other: User, by field: String) -> Bool {
    func precedes(_ a: String?, _ b: String?) -> Bool { (a ?? "").utf8.lexicographicallyPrecedes((b ?? "").utf8) }
    return switch field {
    case "NAME": precedes(displayName, other.displayName)
    case "CREATED_AT": createdAt < other.createdAt
    case "LAST_LOGIN_AT": (lastLoginAt ?? 0) < (other.lastLoginAt ?? 0)
    case "USER_EMAIL": precedes(email, other.email)
    // The users are already in this order.
    default: false
    }
  }
}
