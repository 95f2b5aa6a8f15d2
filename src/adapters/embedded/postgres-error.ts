/** The embedded Postgres did not start. Its message is written for the operator and holds the server's last error lines. */
export class EmbeddedPostgresError extends Error {
  override readonly name = "EmbeddedPostgresError";
  readonly code = "EMBEDDED_POSTGRES";
  /** The server's last error lines, oldest first. */
  readonly lines: readonly string[];

  constructor(message: string, lines: readonly string[], options?: ErrorOptions) {
    super(message, options);
    this.lines = lines;
  }
}
