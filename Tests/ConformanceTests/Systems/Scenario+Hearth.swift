import Foundation
import HearthClient
import TestSupport

extension Scenario {
  /// An app in Swift without a signed-in user.
  func appInSwift() -> Hearth {
    var address = URLComponents()
    (address.scheme, address.host, address.port) = ("http", "127.0.0.1", Int(server.port))
    return Hearth(url: address.url ?? URL(fileURLWithPath: "/"), project: "demo")
  }

  /// An app in Swift, signed in with the password of a new account whose ID is `uid`.
  func appInSwift(of uid: String) throws -> Hearth {
    _ = try person(uid)
    let app = appInSwift()
    _ = try awaitResult {
      try await app.auth.signIn(email: "\(uid)@example.com", password: "password of \(uid)")
    }
    return app
  }
}

/// The code of the error with which the server rejects `body`, or `nil` if it does not.
func codeOfRefusal(_ body: () async throws -> Void) async throws -> HearthClientError.Code? {
  do {
    try await body()
    return nil
  } catch let error as HearthClientError {
    return error.code
  }
}
