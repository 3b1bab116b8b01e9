package import Accounts

extension AccountsService {
  /// Reads accounts. An end user reads the account of an ID token, an administrator any accounts.
  package struct Lookup: Sendable {
    package var idToken: String?
    /// The uids to look up. This and the following properties are for administrators.
    package var uids: [String]?
    package var emails: [String]?
    package var phoneNumbers: [String]?
    /// Identities at other providers.
    package var identities: [(providerID: String, rawID: String)] = []

    package init() {}
  }

  /// Returns each account once, without those that do not exist, and the form in which the caller may read them.
  ///
  /// - Throws: `AccountError`; `StorageError` if the server fails.
  package func lookup(_ request: Lookup, by caller: AccountsCaller) throws -> (users: [User], reader: User.Reader) {
    guard caller.isAdmin else {
      guard request.uids == nil, request.emails == nil, request.phoneNumbers == nil else {
        throw AccountError(.insufficientPermission)
      }
      return ([try owner(of: request.idToken).user], .owner)
    }
    if let idToken = request.idToken { return ([try owner(of: idToken).user], .admin) }
    var found: [User] = []
    func add(_ user: User?) {
      guard let user, !found.contains(where: { $0.uid.utf8.elementsEqual(user.uid.utf8) }) else { return }
      found.append(user)
    }
    let store = accounts.users
    let (uids, emails, numbers) = (request.uids ?? [], request.emails ?? [], request.phoneNumbers ?? [])
    guard uids.count + emails.count + numbers.count + request.identities.count <= Self.lookupsMax else {
      throw AccountError(.localIDListExceedsLimit)
    }
    for uid in uids { add(try store.user(uid)) }
    for email in emails { add(try store.user(email: email.lowercased())) }
    for number in numbers { add(try store.user(phoneNumber: number)) }
    for (providerID, rawID) in request.identities {
      switch providerID {
      case "password": add(try store.user(email: rawID.lowercased()))
      case "phone": add(try store.user(phoneNumber: rawID))
      default: add(try store.user(providerID: providerID, rawID: rawID))
      }
    }
    return (found, .admin)
  }

  /// The largest number of accounts in one lookup.
  private static let lookupsMax = 1000
}
