import DatabaseService
import Files
import Testing

@testable import IdentityAPI
@testable import StorageAPI

/// The responses of a node that lost its project to another one while it handled a request.
@Suite struct NotOwnerTests {
  @Test(arguments: [StorageRequest.API.firebase, .cloud])
  func filesSayToTryAgain(api: StorageRequest.API) {
    let response = StorageErrorResponse(FilesError.notOwner, api)
    #expect(response.status == 503)
    #expect(response.message.contains("Try again"))
    // It is no fault of the server.
    #expect(response.fault == nil)
  }

  @Test func accountsSayToTryAgain() {
    let failure = IdentityFailure(Status(.unavailable, "this node does not own the database; try again"))
    #expect(failure.httpStatus == 503 && !failure.isFault)
    let text = String(decoding: failure.json, as: UTF8.self)
    #expect(text.contains(#""UNAVAILABLE""#) && text.contains("Try again"), "\(text)")
  }
}
