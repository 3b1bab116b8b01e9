extension PostgresContent {
  /// The parts are not compressed: most files are already, and PostgreSQL takes long.
  static let tables = [
    PostgresStatement(
      "make-blob",
      """
      CREATE TABLE IF NOT EXISTS hearth_blob (
        digest bytea, copy bigint, part bigint, added bigint NOT NULL, body bytea NOT NULL,
        PRIMARY KEY (digest, copy, part))
      """),
    PostgresStatement("set-blob", "ALTER TABLE hearth_blob ALTER COLUMN body SET STORAGE EXTERNAL"),
    PostgresStatement(
      "make-blob-whole",
      """
      CREATE TABLE IF NOT EXISTS hearth_blob_whole (
        digest bytea, copy bigint, parts bigint NOT NULL, bytes bigint NOT NULL, PRIMARY KEY (digest, copy))
      """),
    PostgresStatement(
      "make-blob-place",
      "CREATE TABLE IF NOT EXISTS hearth_blob_place (id bigint PRIMARY KEY, identity bigint NOT NULL)"),
  ]

  static let addIdentity = PostgresStatement(
    "blob-add-identity",
    "INSERT INTO hearth_blob_place (id, identity) VALUES (1, $1::bigint) ON CONFLICT (id) DO NOTHING")
  static let identity = PostgresStatement("blob-identity", "SELECT identity FROM hearth_blob_place WHERE id = 1")

  static let addPart = PostgresStatement(
    "blob-add-part",
    """
    INSERT INTO hearth_blob (digest, copy, part, added, body)
    VALUES ($1::bytea, $2::bigint, $3::bigint, extract(epoch FROM clock_timestamp())::bigint, $4::bytea)
    """)
  /// The length of a body that is stored apart is known without reading it.
  static let finish = PostgresStatement(
    "blob-finish",
    """
    INSERT INTO hearth_blob_whole (digest, copy, parts, bytes)
    SELECT $1::bytea, $2::bigint, $3::bigint, $4::bigint WHERE (
      SELECT count(*) FROM hearth_blob WHERE digest = $1::bytea AND copy = $2::bigint) = $3::bigint AND (
      SELECT coalesce(sum(octet_length(body)), 0) FROM hearth_blob WHERE digest = $1::bytea AND copy = $2::bigint
    ) = $4::bigint
    """)

  static let copies = PostgresStatement(
    "blob-copies", "SELECT copy FROM hearth_blob_whole WHERE digest = $1::bytea ORDER BY copy LIMIT 1000")
  static let parts = PostgresStatement(
    "blob-parts", "SELECT parts FROM hearth_blob_whole WHERE digest = $1::bytea AND copy = $2::bigint")
  static let part = PostgresStatement(
    "blob-part",
    "SELECT body FROM hearth_blob WHERE digest = $1::bytea AND copy = $2::bigint AND part = $3::bigint")
  static let page = PostgresStatement(
    "blob-page",
    """
    SELECT digest, copy FROM hearth_blob_whole WHERE (digest, copy) > ($1::bytea, $2::bigint)
    ORDER BY digest, copy LIMIT 1000
    """)

  static let removeWhole = PostgresStatement(
    "blob-remove-whole", "DELETE FROM hearth_blob_whole WHERE digest = $1::bytea AND copy = $2::bigint")
  static let removeParts = PostgresStatement(
    "blob-remove-parts", "DELETE FROM hearth_blob WHERE digest = $1::bytea AND copy = $2::bigint")
  static let leftovers = PostgresStatement(
    "blob-leftovers",
    """
    SELECT b.digest, b.copy FROM hearth_blob b
    WHERE b.added < extract(epoch FROM clock_timestamp())::bigint - $1::bigint AND NOT EXISTS (
      SELECT 1 FROM hearth_blob_whole w WHERE w.digest = b.digest AND w.copy = b.copy)
    GROUP BY b.digest, b.copy LIMIT 1000
    """)
}
