import DocumentModel
import Testing

@testable import HearthCLI

/// The signatures and the XML of S3-compatible stores.
@Suite struct S3Tests {
  private static let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

  /// The expected signatures were computed with botocore 1.40.
  @Test(arguments: [
    (
      "PUT", "store.example", "/backups/pre%20fix/data/a.0", [(String, String)](), "hello", String?.none,
      "4b1b6caf4d29211844e53a8638c92cbbdac921302d468015821fadf5d0f874e9"
    ),
    (
      "GET", "store.example:9000", "/backups",
      [
        ("list-type", "2"), ("encoding-type", "url"), ("prefix", "pre fix/manifests/"),
        ("continuation-token", "a+b="),
      ], "", "TOKEN/1", "9c9ab086841a19c626b0dab08d5f68ed51ad53afe85b0775f657f72e31b99138"
    ),
  ])
  func requestsAreSignedAsAmazonsLibrarySignsThem(
    method: String, host: String, path: String, query: [(String, String)], body: String, token: String?,
    expected: String
  ) throws {
    let credentials = S3Credentials(id: "AKIDEXAMPLE", secret: Self.secret, token: token)
    let time = try #require(Timestamp(rfc3339: "2026-11-22T15:15:02.75Z".utf8))
    let headers = try #require(
      S3Signature(credentials: credentials, region: "eu-central-1").headers(
        method, host: host, path: path, query: query.map { (name: $0.0, value: $0.1) }, body: Array(body.utf8), at: time
      ))
    let fields = Dictionary(uniqueKeysWithValues: headers.map { ($0.name, $0.value) })
    let names = "host;x-amz-content-sha256;x-amz-date" + (token == nil ? "" : ";x-amz-security-token")
    #expect(
      fields["Authorization"]
        == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261122/eu-central-1/s3/aws4_request, SignedHeaders=\(names), "
        + "Signature=\(expected)")
    #expect(fields["x-amz-date"] == "20261122T151502Z")
    #expect(fields["x-amz-security-token"] == token)
  }

  @Test func credentialsAreThoseOfTheChosenProfile() {
    let file = """
      # comment
      [default]
      aws_access_key_id = A
      aws_secret_access_key=B=
      [ci]
        aws_access_key_id=C
      aws_secret_access_key =  D
      aws_session_token = E
      [half]
      aws_access_key_id = F
      """
    #expect(S3Credentials(file: file, profile: "default") == S3Credentials(id: "A", secret: "B=", token: nil))
    #expect(S3Credentials(file: file, profile: "ci") == S3Credentials(id: "C", secret: "D", token: "E"))
    #expect(S3Credentials(file: file, profile: "half") == nil)
    #expect(S3Credentials(file: file, profile: "none") == nil)
  }

  @Test func listingsAreReadWithEncodedNames() {
    let page = S3Listing(
      Array(
        """
        <?xml version="1.0"?><ListBucketResult><IsTruncated>true</IsTruncated>
        <NextContinuationToken>a&amp;b</NextContinuationToken>
        <Contents><Key>pre+fix/a%2Bb%C3%BC.0</Key><LastModified>2026-11-22T15:15:02.000Z</LastModified><Size>12</Size>
        </Contents><Contents><Key>%zz</Key><Size>1</Size></Contents><Contents><Key>c</Key></Contents></ListBucketResult>
        """.utf8))
    #expect(
      page.objects == [
        BucketObject(name: "pre fix/a+bü.0", size: 12, stored: Timestamp(rfc3339: "2026-11-22T15:15:02Z".utf8)),
        BucketObject(name: "c", size: 0, stored: nil),
      ])
    #expect(page.nextToken == "a&b")
    #expect(S3Listing(Array("<ListBucketResult><IsTruncated>false".utf8)).nextToken == nil)
  }

  @Test func errorsHaveACodeAndAMessage() {
    let error = S3Listing.error(
      Array("<Error><Code>NoSuchBucket</Code><Message>It&apos;s not there</Message></Error>".utf8))
    #expect(error.code == "NoSuchBucket" && error.message == "It's not there")
    #expect(S3Listing.error(Array("502 Bad Gateway".utf8)).code.isEmpty)
  }
}
