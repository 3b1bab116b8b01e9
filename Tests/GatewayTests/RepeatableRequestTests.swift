import Gateway
import Testing
import TestSupport
@testable import GatewayCore
@testable import Transport

/// Which requests a node may send again.
@Suite struct RepeatableRequestTests {
  private func repetition(
    _ method: HTTPMethod, _ target: String, isGRPC: Bool = false
  ) -> RequestRepetition {
    let head = Array("\(target)content-typeapplication/grpc".utf8)
    let start = UInt32(target.utf8.count)
    let fields = [HeaderField(nameStart: start, nameCount: 12, valueStart: start + 12, valueCount: 16)]
    return head.withUnsafeBytes { bytes in
      fields.withUnsafeBufferPointer { fields in
        guard let message = bytes.baseAddress else { return .never }
        let request = HTTPRequest(
          version: isGRPC ? .http2 : .http11, method: method,
          target: UnsafeRawBufferPointer(rebasing: bytes[..<target.utf8.count]),
          body: UnsafeRawBufferPointer(rebasing: bytes[bytes.count...]), message: message,
          fields: isGRPC ? fields : UnsafeBufferPointer(rebasing: fields[..<0]), socket: -1)
        let repeatable = HTTPGateway.repeatableRequests
        return repeatable.repetition(of: request)
      }
    }
  }

  private static let root = "/v1/projects/p/databases/(default)/documents"

  @Test(arguments: [
    (HTTPMethod.post, ":commit"), (.post, ":batchWrite"), (.post, "/c"), (.post, "/c?documentId=a"), (.patch, "/c/a"),
    (.delete, "/c/a"), (.delete, "/c/a?currentDocument.exists=true"),
  ]) func writesOverRESTNeedAnID(method: HTTPMethod, path: String) {
    #expect(repetition(method, Self.root + path) == .withID)
  }

  @Test(arguments: [
    (HTTPMethod.get, "/c/a"), (.get, "/c?pageSize=1"), (.post, ":runQuery"), (.post, "/c/a:runQuery"),
    (.post, ":batchGet"), (.post, ":beginTransaction"), (.post, ":rollback"), (.post, ":runAggregationQuery"),
  ]) func readsMayAlwaysBeRepeated(method: HTTPMethod, path: String) {
    #expect(repetition(method, Self.root + path) == .always)
  }

  @Test(arguments: [
    "accounts:signInWithPassword", "accounts:lookup", "accounts:createAuthUri", "token", "projects/p/accounts:lookup",
    "projects/p/accounts:query", "projects/p:queryAccounts", "projects/p:createSessionCookie",
  ]) func signInsMayAlwaysBeRepeated(call: String) {
    #expect(repetition(.post, "/v1/\(call)") == .always)
    #expect(repetition(.put, "/v1/\(call)") == .never)
  }

  @Test(arguments: [
    "accounts:signUp", "accounts:signInWithCustomToken", "accounts:signInWithIdp", "accounts:signInWithEmailLink",
    "accounts:signInWithPhoneNumber", "accounts:sendOobCode", "accounts:resetPassword", "accounts:update",
    "accounts:delete", "projects/p/accounts", "projects/p/accounts:batchCreate", "projects/p/accounts:batchDelete",
    "projects/p/accounts:update",
  ]) func changesOfAccountsAreNever(call: String) {
    #expect(repetition(.post, "/v1/\(call)") == .never)
  }

  @Test(arguments: [
    (HTTPMethod.post, root + ":executePipeline"), (.post, root + ":write"), (.post, root + ":listen"),
    (.get, root + "/c:listen"), (.put, root + "/c/a"), (.post, "/v1/accounts:signUp"), (.post, "/upload/storage/v1/b"),
    (.post, "/google.firestore.v1.Firestore/Write/channel?VER=8"), (.delete, "/emulator/v1/projects/p"), (.get, "/"),
  ]) func theRestIsNever(method: HTTPMethod, target: String) {
    #expect(repetition(method, target) == .never)
  }

  @Test func methodsOverGRPC() {
    let expected: [(String, RequestRepetition)] = [
      ("Commit", .withID), ("BatchWrite", .withID), ("CreateDocument", .withID), ("UpdateDocument", .withID),
      ("DeleteDocument", .withID), ("RunQuery", .always), ("GetDocument", .always), ("BeginTransaction", .always),
      ("ExecutePipeline", .never), ("Write", .never), ("Listen", .never), ("Nothing", .never),
    ]
    for (method, repetition) in expected {
      let target = "/google.firestore.v1.Firestore/\(method)"
      #expect(self.repetition(.post, target, isGRPC: true) == repetition, "\(method)")
      #expect(self.repetition(.post, target) == .never, "not a gRPC call")
    }
  }
}
