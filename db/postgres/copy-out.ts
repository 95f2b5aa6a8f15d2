import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import type pg from "pg";
import type { CopyToStreamQuery } from "pg-copy-streams";
import { readSqlState } from "#lib/sql-state.ts";

/**
 * Writes a COPY's output into a file, and returns the number of rows. If the file cannot be written, the connection is
 * closed: a COPY whose stream has no reader never ends, and every later statement would wait for it.
 */
export async function copyToFile(
  client: pg.PoolClient,
  stream: CopyToStreamQuery,
  file: string,
): Promise<number> {
  try {
    await pipeline(stream, createWriteStream(file));
  } catch (thrown) {
    // An error of the server has ended the COPY, and the connection takes the next statement.
    if (readSqlState(thrown) === null) closeConnection(client);
    throw thrown;
  }
  // The stream ends with the last row. The number comes in a later message, and this statement runs after that one.
  await client.query("");
  return stream.rowCount;
}

/** Yields a COPY's output. The connection is closed if the reader leaves before the end. */
export async function* readCopy(
  client: pg.PoolClient,
  stream: CopyToStreamQuery,
): AsyncGenerator<Buffer, void, undefined> {
  let isRead = false;
  try {
    for await (const chunk of stream) yield chunk as Buffer;
    isRead = true;
  } finally {
    if (!isRead) closeConnection(client);
  }
}

/** The server ends the session, and with it the transaction. */
function closeConnection(client: pg.PoolClient): void {
  const { connection } = client as pg.PoolClient & { connection: { stream: { destroy(): void } } };
  connection.stream.destroy();
}
