import TestSupport

/// Every way in which Hearth may answer otherwise than the emulator, with the reason.
///
/// A step says in `expectedDifference` which row it may meet; a difference that no step announces is a failure.
/// Rows say what each server must answer then, so that a known difference cannot hide another one. Error texts are
/// never compared: the emulator's are its own (`no entity to update: app: …`), Hearth gives production's.
///
/// Where the emulator is plainly wrong or never answers, no step goes there and `DocumentedAnswerTests` asks Hearth
/// alone.
enum KnownDifference: String, Sendable, CaseIterable {
  /// Production answers ABORTED for a read-write transaction that has ended, so that clients retry; the emulator says
  /// INVALID_ARGUMENT for every ended transaction, as production does for read-only ones.
  case endedTransaction

  /// The emulator merges the writes of one document before it looks at preconditions, and refuses pairs such as delete
  /// then update(exists). Hearth judges each precondition after the writes before it.
  case preconditionAfterOwnWrite

  /// The emulator refuses a document both written and verified in one commit, and a verify without a precondition;
  /// production takes what web SDKs send.
  case verify

  /// Documents of another project or database: production and Hearth refuse them, the emulator writes them.
  case otherDatabase

  /// More than 500 transforms on a document: production and Hearth refuse, the emulator has no limit.
  case tooManyTransforms

  /// Sorting by name downwards needs an index that the emulator lacks (FAILED_PRECONDITION).
  case descendingNames

  /// JSON that is none: comments, single quotes, names without quotes, text after the end. The emulator's parser is
  /// lenient.
  case looseJSON

  /// Dates and hours that do not exist (30 February, 24:00) roll over in the emulator.
  case impossibleTime

  /// Nested arrays inside the operand of an array transform: refused like every other nested array, taken by the
  /// emulator.
  case nestedArrayOperand

  /// Unknown query parameters are an error in production and ignored by the emulator. Hearth may do either.
  case unknownParameter

  /// `__name__` in a mask of fields to write: not allowed by the documentation, ignored by the emulator.
  case nameInUpdateMask

  /// A page size or boolean in a URL that is no number or word: the emulator reads it as the default.
  case malformedParameter

  /// Numbers and booleans where a string belongs: taken by the emulator's JSON as their text.
  case scalarForString

  /// A lone surrogate becomes a question mark in the emulator, a 400 or U+FFFD elsewhere.
  case loneSurrogate

  /// The numeric id 0 is writable in production and reserved in the emulator.
  case numericIDZero

  /// A time before the database was made: production says so (INVALID_ARGUMENT), the emulator finds it too old.
  case timeBeforeDatabase

  /// More than nine digits of a fraction of a second, a space for its T, half the padding of base64: refused or taken.
  case spelling

  /// Times of a document in a request, which count for nothing: read by the emulator, skipped by Hearth.
  case timesInRequest

  /// A vector directly in an array: refused by the emulator; nothing is documented.
  case vectorInArray

  /// Integers as components of a vector: stored as doubles in production, refused by the emulator.
  case vectorOfIntegers

  /// Whether the databases may hold different documents afterwards, so that going on makes no sense.
  var changesDocuments: Bool {
    switch self {
    case .endedTransaction, .descendingNames, .timeBeforeDatabase: false
    default: true
    }
  }

  /// Whether this row explains that the two answers differ.
  func explains(oracle: Answer, subject: Answer) -> Bool {
    let refused = subject.status == 400 && subject.errorStatus == "INVALID_ARGUMENT"
    switch self {
    case .endedTransaction:
      return oracle.errorStatus == "INVALID_ARGUMENT" && (subject.errorStatus == "ABORTED" || refused)
    case .preconditionAfterOwnWrite:
      // The emulator also forgets the time that a first write asks for when a second one asks again.
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
      // One takes what the other refuses.
      return refused || oracle.errorStatus == "INVALID_ARGUMENT" && subject.status == 200
    case .loneSurrogate:
      return oracle.status == 200 && (refused || subject.raw.contains("\u{FFFD}"))
    case .numericIDZero:
      return oracle.errorStatus == "INVALID_ARGUMENT" && (refused || subject.status == 200)
    }
  }
}
