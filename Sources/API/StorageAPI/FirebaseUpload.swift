import GatewayCore
import Files
import RulesEngine
import Transport

/// Uploads in one request: the body is the content, or two parts with metadata and content.
extension FirebaseStorageHandler {
  /// Whether the body of a `POST` or `PUT` request is content.
  static func bringsContent(_ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) -> Bool {
    if request.header("x-http-method-override") != nil { return false }
    if let command = request.header("x-goog-upload-command") {
      let commands = commands(command)
      return commands.contains("upload") && !commands.contains("start")
    }
    if request.header("x-goog-upload-protocol").map({ $0.elementsEqual("resumable".utf8) }) ?? false { return false }
    guard let parameters = try? QueryParameters(query) else { return true }
    if parameters.value("uploadId") != nil { return request.method == .put }
    if parameters.value("uploadType") == "resumable" { return false }
    return parameters.value("createToken") == nil && parameters.value("deleteToken") == nil
  }

  /// Opens the body of an upload, or responds with an error and returns `nil` if the request is rejected at once.
  func openBody(_ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) -> (any BodySink)? {
    do throws(FilesError) {
      guard let target = try Target(path, storageRequest.parameters) else {
        storageRequest.failUnknown()
        return nil
      }
      if let command = request.header("x-goog-upload-command") {
        return try FirebaseResumableUpload(storageRequest).openBody(Self.commands(command), request)
      }
      if let id = storageRequest.parameters.value("uploadId") {
        return try CloudResumableUpload(storageRequest).openBody(id, request)
      }
      let isMultipart =
        request.header("x-goog-upload-protocol").map { $0.elementsEqual("multipart".utf8) } ?? false
        || storageRequest.parameters.value("uploadType") == "multipart"
      return try upload(target, isMultipart: isMultipart, request)
    } catch {
      let storageRequest = storageRequest
      return DiscardedBody.responding(request) { [error] in storageRequest.fail(error) }
    }
  }

  /// The limit of an upload of unknown length whose sender is subject to rules. The server evaluates the rules at
  /// the end, so a denied upload can use at most this much of the disk.
  static let unknownBytesMax = 16 << 20

  /// The lengths with which the server evaluates rules if the length of an upload is unknown.
  private static let probedSizes = [0, 1, 100 << 10, 10 << 20]

  /// Rejects an upload before its content arrives if the rules already deny it.
  ///
  /// If the length is unknown or one of a range, the rules must deny the upload for every length tried. If the
  /// rules cannot decide yet because they use checksums, an upload longer than ``unknownBytesMax`` is rejected.
  ///
  /// - Parameter sizes: the possible lengths, or `nil` if unknown.
  /// - Throws: ``FilesError/denied(_:)`` if the upload is rejected.
  func requireEarly(_ name: ObjectName, _ attributes: ObjectAttributes, sizes: ClosedRange<Int>?) throws(FilesError) {
    guard !storageRequest.isAdmin else { return }
    let probed = sizes.map { $0.count > 1 ? [$0.lowerBound, $0.upperBound] : [$0.lowerBound] } ?? Self.probedSizes
    var refusal: FilesError?
    for size in probed {
      let content = ContentSummary(size: size, crc32c: 0, md5: [], digest: ContentDigest(bytes: []))
      let now = storageRequest.store.now
      let object = StoredObject(
        name: name, generation: now, created: now, updated: now, content: content, attributes: attributes)
      do throws(FilesError) {
        let isDecided = try storageRequest.authorizer.requireEarly(
          object, as: storageRequest.caller, store: storageRequest.store)
        if isDecided || sizes.map({ $0.lowerBound <= Self.unknownBytesMax }) ?? true { return }
        refusal = .denied(
          "The rules use checksums, which are known only at the end. Such uploads may have at most "
            + "\(Self.unknownBytesMax) bytes.")
      } catch { refusal = error }
    }
    if let refusal { throw refusal }
  }

  /// The limit of content whose length the client did not announce, or `nil` for administrators.
  var unknownLimit: (bytes: Int, error: FilesError)? {
    storageRequest.isAdmin ? nil : (Self.unknownBytesMax, .lengthRequired(bytesMax: Self.unknownBytesMax))
  }

  private func upload(
    _ target: Target, isMultipart: Bool, _ request: borrowing HTTPRequest
  ) throws(FilesError) -> any BodySink {
    let conditions = try ObjectConditions(storageRequest.parameters)
    // In a multipart upload the metadata may contain the name.
    let named = try target.name == nil && isMultipart ? nil : target.object()
    let bucket = target.bucket
    let contentType = isMultipart ? nil : request.text("content-type")
    let contentEncoding = isMultipart ? nil : request.text("content-encoding")
    try storageRequest.authorizer.requireRules(as: storageRequest.caller)
    let length = request.text("content-length").flatMap { Int($0) }
    let checksums = try DeclaredChecksums(request, isContent: !isMultipart)
    var attributes = ObjectAttributes()
    attributes.contentType = contentType
    attributes.contentEncoding = contentEncoding
    try attributes.check()
    if let named, !isMultipart { try requireEarly(named, attributes, sizes: length.map { $0...$0 }) }
    let multipart = try isMultipart ? MultipartReader(contentType: request.header("content-type")) : nil
    let limit = length == nil ? unknownLimit : nil
    let described = {
      @Sendable [attributes] (head: UploadBody.MultipartHead?) throws(FilesError) -> (
        name: ObjectName, attributes: ObjectAttributes, declared: DeclaredChecksums
      ) in
      var attributes = attributes
      var name = named
      var declared = checksums
      if let head {
        attributes.contentType = head.contentType
        let metadata = try head.metadata.withRawBytes { (bytes) throws(FilesError) in try AttributesReader(bytes) }
        metadata.apply(to: &attributes, keepsTokens: false)
        declared = try declared.merged(with: metadata.declared)
        if name == nil, let text = metadata.name { name = try ObjectName(checking: bucket, text) }
      }
      guard let name else { throw .invalid("The request names no object.") }
      return (name, attributes, declared)
    }
    let plan = UploadBody.Plan(
      open: { () throws(FilesError) in .init(incoming: try storageRequest.store.makeIncoming(), limit: limit) },
      authorizeHead: { (head, sizes) throws(FilesError) in
        let (name, attributes, _) = try described(head)
        try attributes.check()
        try requireEarly(name, attributes, sizes: sizes)
      },
      finish: { (file, head) throws(FilesError) in
        let (name, described, declared) = try described(head)
        var attributes = described
        if attributes.metadata.downloadTokens.isEmpty { attributes.metadata.downloadTokens = [DownloadToken.make()] }
        let object = try storageRequest.store.put(
          name, file.incoming, attributes, declared: declared, conditions: conditions
        ) { [name] (before, after) throws(FilesError) in try require(.create, name, before: before, after: after) }
        return { send(object) }
      },
      fail: { storageRequest.fail($0) })
    return UploadBody(storageRequest.responder.exchange, multipart: multipart, bodyBytes: length, plan)
  }
}
