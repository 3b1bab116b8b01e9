package import Accounts

extension AccountsService {
  /// Finds and sorts accounts. For administrators.
  package struct Query: Sendable {
    /// A condition. All its properties that are not `nil` must be equal.
    package struct Expression: Sendable {
      package var email: String?
      package var uid: String?
      package var phoneNumber: String?

      package init(email: String? = nil, uid: String? = nil, phoneNumber: String? = nil) {
        self.email = email
        self.uid = uid
        self.phoneNumber = phoneNumber
      }
    }

    /// The property to sort by.
    package enum Order: String, Sendable {
      case uid = "USER_ID"
      case name = "NAME"
      case createdAt = "CREATED_AT"
      case lastLoginAt = "LAST_LOGIN_AT"
      case email = "USER_EMAIL"
    }

    /// The conditions, at least one of which must hold. If empty, all accounts are found.
    package var expressions: [Expression] = []
    /// The property to sort by. If `nil`, the order is ascending by uid.
    package var order: Order? = .uid
    package var isDescending = false
    /// The largest number of users to return, 1 to 500; 500 by default.
    package var limit: Int?
    package var offset = 0
    /// Whether to return the users, not only their number.
    package var returnsUsers = true

    package init() {}
  }

  /// Returns the number of accounts that match, and the requested part of them. Cost: reads all accounts.
  ///
  /// - Throws: `AccountError`; `StorageError` if the server fails.
  package func query(_ request: Query, by caller: AccountsCaller) throws -> (count: Int, users: [User]) {
    try caller.requireAdmin()
    let limit = request.limit ?? 500
    guard (1...500).contains(limit) else { throw AccountError(.invalidPageSelection) }
    var found: [User] = []
    var last: String?
    repeat {
      let page = try accounts.users.users(after: last, limit: 1000)
      found += page.filter { user in request.expressions.isEmpty || request.expressions.contains { $0.matches(user) } }
      last = page.count == 1000 ? page.last?.uid : nil
      guard found.count <= Self.queriedMax else {
        throw AccountError(.invalidArgument, "More than \(Self.queriedMax) users match. Use batchGet to read them.")
      }
    } while last != nil
    found.sort { a, b in
      let isBefore = a.precedes(b, by: request.order)
      return isBefore == b.precedes(a, by: request.order)
        ? a.uid.utf8.lexicographicallyPrecedes(b.uid.utf8) : isBefore != request.isDescending
    }
    if request.isDescending, request.order == .uid { found.reverse() }
    let page = request.returnsUsers ? Array(found.dropFirst(max(0, request.offset)).prefix(limit)) : []
    return (found.count, page.map(caller.shown))
  }

  /// The largest number of users that a query sorts in memory.
  private static let queriedMax = 100_000
}

extension AccountsService.Query.Expression {
  fileprivate func matches(_ user: User) -> Bool {
    let pairs = [(email?.lowercased(), user.email), (uid, user.uid), (phoneNumber, user.phoneNumber)]
    let conditions = pairs.compactMap { wanted, value in
      wanted.map { value?.utf8.elementsEqual($0.utf8) ?? false }
    }
    return !conditions.isEmpty && conditions.allSatisfy { $0 }
  }
}

extension User {
  fileprivate func precedes(_ other: User, by order: AccountsService.Query.Order?) -> Bool {
    func precedes(_ a: String?, _ b: String?) -> Bool { (a ?? "").utf8.lexicographicallyPrecedes((b ?? "").utf8) }
    return switch order {
    case .name: precedes(displayName, other.displayName)
    case .createdAt: createdAt < other.createdAt
    case .lastLoginAt: (lastLoginAt ?? 0) < (other.lastLoginAt ?? 0)
    case .email: precedes(email, other.email)
    // The users are already in this order.
    case .uid, nil: false
    }
  }
}
