import Files
import FileService
import GatewayCore
import Transport

/// An upload in one request: the body is the content, or two parts with metadata and content.
struct WholeUpload: Sendable {
  private let storageRequest: StorageRequest
  private let bucket: String
  /// The name in the URL, or `nil` if the metadata contain it.
  private let name: String?
  var attributes = ObjectAttributes()
  var conditions = ObjectConditions()
  var declared = DeclaredChecksums()

  init(_ storageRequest: StorageRequest, bucket: String, name: String?) {
    self.storageRequest = storageRequest
    self.bucket = bucket
    self.name = name
  }

  /// Opens a body that is only content.
  ///
  /// - Throws: ``FilesError`` if the upload is rejected at once.
  func openBody(_ request: borrowing HTTPRequest) throws(FilesError) -> UploadBody {
    let length = Self.length(request)
    let upload = try begin(nil, sizes: length.map { $0...$0 })
    return UploadBody(storageRequest.responder.exchange, upload, bodyBytes: length, respond: respond)
  }

  /// Opens a body of two parts.
  func openBody(_ reader: MultipartReader, _ request: borrowing HTTPRequest) -> UploadBody {
    UploadBody(
      storageRequest.responder.exchange, reader, bodyBytes: Self.length(request),
      begin: { (head, sizes) throws(FilesError) in try begin(head, sizes: sizes) }, respond: respond)
  }

  private static func length(_ request: borrowing HTTPRequest) -> Int? {
    request.text("content-length").flatMap { Int($0) }
  }

  private func begin(_ head: UploadBody.MultipartHead?, sizes: ClosedRange<Int>?) throws(FilesError) -> Upload {
    let isFirebase = storageRequest.api == .firebase
    var (name, attributes, declared) = (name, attributes, declared)
    var commit: FileCommit?
    if let head {
      attributes.contentType = head.contentType
      let metadata = try head.metadata.withRawBytes { (bytes) throws(FilesError) in
        try AttributesReader(bytes, takesCommit: !isFirebase)
      }
      commit = metadata.commit
      metadata.apply(to: &attributes, keepsTokens: false)
      declared = try declared.merged(with: metadata.declared)
      // In Firebase's API the URL overrides the metadata.
      name = isFirebase ? name ?? metadata.name : metadata.name ?? name
    }
    guard let name else { throw .invalid(isFirebase ? "The request names no object." : "Required parameter: name") }
    if isFirebase { attributes.metadata.addTokenIfMissing() }
    var draft = ObjectDraft(try ObjectName(checking: bucket, name), attributes)
    draft.conditions = conditions
    draft.declared = declared
    draft.sizes = sizes
    return try storageRequest.service.insertObject(draft, with: commit, as: storageRequest.caller)
  }

  private var respond: UploadBody.Respond {
    { [storageRequest] result in
      switch result {
      case .success(.stored(let object, let outcome)): storageRequest.send(object, outcome)
      case .success(.received): storageRequest.sendEmpty(200)
      case .failure(let error): storageRequest.fail(error)
      }
    }
  }
}
