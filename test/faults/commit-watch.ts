const NO_BYTES = Buffer.alloc(0);

/**
 * Returns a watch that reads both directions of one Postgres connection and detects a COMMIT: the simple query or the
 * parse with that text, and the CommandComplete that answers it. It detects nothing in any other protocol.
 */
export function createCommitWatch() {
  // Only the first message of a client has no type byte.
  const asked = createFrames(true);
  const answered = createFrames(false);
  return {
    /** Returns whether this chunk of the client's contains the end of a message that requests a commit. */
    asks: (chunk: Buffer) =>
      asked(chunk).some(({ type, body }) => (type === "Q" || type === "P") && isCommit(body)),
    /** Returns whether this chunk of the server's confirms a commit. */
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

/**
 * Returns a function that divides a stream of chunks into messages. A message over several chunks is returned with
 * its last one.
 */
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
      // The protocol is another one, so its bytes are ignored.
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
