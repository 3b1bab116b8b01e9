import TestSupport

/// The ways in which Hearth's responses may differ from the emulator's, with the reasons.
///
/// A step names the row that it may meet in `expectedDifference`. A difference that no step announces is a failure.
/// Each row states the responses of both servers, so that a known difference cannot hide another one. Error messages
/// are never compared: the emulator has its own (`no entity to update: app: …`), Hearth gives production's.
///
/// If the emulator is plainly wrong or never responds, no step tests that, and `DocumentedAnswerTests` test Hearth
/// alone.
enum KnownDifference: String, Sendable, CaseIterable {
  /// Production responds with ABORTED for a read-write transaction that has ended, so that clients retry. The
  /// emulator gives INVALID_ARGUMENT for every ended transaction, as production does for read-only ones.
  case endedTransaction

  /// The emulator merges the writes of one document before it checks preconditions, and rejects pairs such as delete
  /// then update(exists). Hearth checks each precondition after the preceding writes.
  case preconditionAfterOwnWrite

  /// The emulator rejects a document that one commit both writes and verifies, and a verify without a precondition.
  /// Production accepts the commits of web SDKs.
  case verify

  /// Documents of another project or database: production and Hearth reject writes to them, the emulator writes them.
  case otherDatabase

  /// More than 500 transforms of a document: production and Hearth reject them, the emulator has no limit.
  case tooManyTransforms

  /// Sorting by name in descending order needs an index that the emulator lacks (FAILED_PRECONDITION).
  case descendingNames

  /// Invalid JSON: comments, single quotes, unquoted names, text after the end. The emulator's parser is lenient.
  case looseJSON

  /// Dates and hours that do not exist (30 February, 24:00): the emulator rolls them over.
  case impossibleTime

  /// Nested arrays inside the operand of an array transform: rejected like every nested array, but accepted by the
  /// emulator.
  case nestedArrayOperand

  /// Unknown query parameters are an error in production and ignored by the emulator. Hearth may do either.
  case unknownParameter

  /// `__name__` in a mask of fields to write: forbidden by the documentation, ignored by the emulator.
  case nameInUpdateMask

  /// A page size or boolean in a URL that is not a valid number or word: the emulator uses the default.
  case malformedParameter

  /// Numbers and booleans in place of a string: the emulator accepts them as their text.
  case scalarForString

  /// A lone surrogate: a question mark in the emulator, an error 400 or U+FFFD elsewhere.
  case loneSurrogate

  /// The numeric ID 0: writable in production, reserved in the emulator.
  case numericIDZero

  /// A time before the database was created: production reports that (INVALID_ARGUMENT), the emulator finds it too
  /// old.
  case timeBeforeDatabase

  /// More than nine digits of a fraction of a second, a space instead of the T, incomplete base64 padding: one server
  /// rejects them, the other accepts them.
  case spelling

  /// Times of a document in a request, which have no effect: the emulator parses them, Hearth skips them.
  case timesInRequest

  /// A vector directly in an array: rejected by the emulator, undocumented for production.
  case vectorInArray

  /// Integers as components of a vector: stored as doubles in production, rejected by the emulator.
  case vectorOfIntegers

  /// Whether the databases may contain different documents afterwards. If so, the sequence must stop.
  var changesDocuments: Bool {
    switch self {
    case .endedTransaction, .descendingNames, .timeBeforeDatabase: false
    default: true
    }
  }

  /// Whether this row explains the difference between two responses.
  func explains(oracle: Answer, subject: Answer) -> Bool {
    let refused = subject.status == 400 && subject.errorStatus == "INVALID_ARGUMENT"
    switch self {
    case .endedTransaction:
      return oracle.errorStatus == "INVALID_ARGUMENT" && (subject.errorStatus == "ABORTED" || refused)
    case .preconditionAfterOwnWrite:
      // The emulator also forgets the time that the first write requires if a second one requires a time.
      let isRefusedByOne = oracle.status != 200 || subject.status != 200
      return isRefusedByOne && [200, 400].contains(oracle.status) && [200, 400, 404, 409].contains(subject.status)
    case .verify:
      return oracle.errorStatus == "INVALID_ARGUMENT" && [200, 400, 404, 409].contains(subject.status)
    case .descendingNames:
      return oracle.errorStatus == "FAILED_PRECONDITION" && subject.status == 200
    case .otherDatabase, .tooManyTransforms, .looseJSON, .impossibleTime, .nestedArrayOperand, .malformedParameter:
      return oracle.status == 200 && refused
    case .timeBeforeDatabase:
      return oracle.errorStatus == "FAILED_PRECONDITION" && refused
    case .vectorOfIntegers:
      return oracle.errorStatus == "INVALID_ARGUMENT" && subject.status == 200
    case .unknownParameter, .nameInUpdateMask, .scalarForString, .spelling, .timesInRequest, .vectorInArray:
      // One server accepts the request that the other rejects.
      return refused || oracle.errorStatus == "INVALID_ARGUMENT" && subject.status == 200
    case .loneSurrogate:
      return oracle.status == 200 && (refused || subject.raw.contains("\u{FFFD}"))
    case .numericIDZero:
      return oracle.errorStatus == "INVALID_ARGUMENT" && (refused || subject.status == 200)
    }
  }
}
