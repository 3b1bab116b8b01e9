import DatabaseService
import Dispatch
import DocumentModel
import Files
import RulesEngine
import Transport
import WireFormat

/// Handles the requests with which test suites control an emulator's files: `PUT /internal/setRules`
/// (storage-api.md, section 13).
struct FilesControl: Sendable {
  let call: StorageRequest
  let rules: FileRules

  init(_ call: StorageRequest, rules: FileRules) {
    self.call = call
    self.rules = rules
  }

  /// Handles a request for a path after `/internal/`.
  func handle(_ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) {
    guard request.method == .put, path.elementsEqual("setRules".utf8) else { return call.failUnknown() }
    let upload: RulesUpload?
    do throws(WireError) {
      upload = try JSONDocument().withParsed(request.body, isPadded: true) { (root) throws(WireError) in
        RulesUpload(root)
      }
    } catch { return call.fail(.invalid(error.description)) }
    guard let upload else { return call.fail(.invalid("The body must be {\"rules\": {\"files\": […]}}.")) }
    call.work { () throws(FilesError) in
      do throws(RulesetError) {
        rules.upload(try Ruleset(compiling: upload.text, service: FileRules.service))
      } catch { throw .invalid("There was an error updating rules:\n\(error.summary)") }
    } then: {
      call.send { $0.member("message", "Rules updated successfully") }
    }
  }
}
