const NO_BYTES = Buffer.alloc(0);

/**
 * Reads both directions of one Postgres connection as far as it takes to see a COMMIT go by: the simple query or the
 * parse with that text, and the CommandComplete that answers it. On any other protocol it sees nothing.
 */
export function createCommitWatch() {
  // The first message of a client, and only that, has no type byte.
  const asked = createFrames(true);
  const answered = createFrames(false);
  return {
    /** Whether this chunk of the client's holds the end of a message that asks for a commit. */
    asks: (chunk: Buffer) =>
      asked(chunk).some(({ type, body }) => (type === "Q" || type === "P") && isCommit(body)),
    /** Whether this chunk of the server's says that a commit is done. */
    answers: (chunk: Buffer) =>
      answered(chunk).some(({ type, body }) => type === "C" && body.toString("latin1") === "COMMIT\0"),
  };
}

function isCommit(body: Buffer): boolean {
  return /^(?:[^\0]*\0)?commit\0/i.test(body.toString("latin1", 0, 64));
}

interface Frame {
  readonly type: string;
  readonly body: Buffer;
}

/** Cuts a stream of chunks into messages; a message over several chunks comes with its last one. */
function createFrames(beginsWithStartup: boolean): (chunk: Buffer) => Frame[] {
  let rest: Buffer = NO_BYTES;
  let isStartup = beginsWithStartup;
  return (chunk) => {
    const frames: Frame[] = [];
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (;;) {
      const head = isStartup ? 0 : 1;
      if (rest.length < head + 4) return frames;
      const end = head + rest.readInt32BE(head);
      // Another protocol, whose bytes say nothing here: look at none of them.
      if (end < head + 4 || end > 1 << 28) {
        rest = NO_BYTES;
        return frames;
      }
      if (rest.length < end) return frames;
      frames.push({
        type: isStartup ? "" : String.fromCharCode(rest[0] ?? 0),
        body: rest.subarray(head + 4, end),
      });
      rest = rest.subarray(end);
      isStartup = false;
    }
  };
}
