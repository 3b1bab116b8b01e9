import ContentSharing
import Testing

/// The texts that name a place of shared files.
@Suite struct ChoiceTests {
  @Test(arguments: [
    ("postgres", SharedContentChoice.postgres), ("/srv/files", .folder("/srv/files")),
    ("/srv/files//", .folder("/srv/files")),
    ("s3://b", .s3(bucket: "b", prefix: "")), ("s3://b/", .s3(bucket: "b", prefix: "")),
    ("s3://b/a/c/", .s3(bucket: "b", prefix: "a/c/")), ("gs://b/a", .cloudStorage(bucket: "b", prefix: "a/")),
  ])
  func textsNamePlaces(text: String, choice: SharedContentChoice) throws {
    #expect(try SharedContentChoice(text) == choice)
  }

  @Test(arguments: ["", "files", "/", "///", "s3://", "gs:///p", "http://b/p", "postgres://h/d", "://b"])
  func otherTextsAreRefused(text: String) {
    let refusal = #expect(throws: SharedContentChoice.Invalid.self) { try SharedContentChoice(text) }
    #expect(refusal?.description.contains("write") == true || refusal?.description.contains("name") == true)
  }
}
