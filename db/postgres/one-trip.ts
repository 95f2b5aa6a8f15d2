import type pg from "pg";

/** The pool client with pg's switch for sending without waiting, which pg's types do not declare yet. */
type Pipelined = pg.PoolClient & { pipeline: boolean };

/**
 * Runs the statements that `send` starts, in order, in one round trip, because every wait for an answer prolongs the
 * transaction's locks. Nothing else may use the connection meanwhile, and no statement may be a COPY. After a failure
 * Postgres refuses the statements behind it. The first failure is thrown when all are answered.
 */
export async function inOneTrip<T extends readonly PromiseLike<unknown>[]>(
  client: pg.PoolClient,
  send: () => readonly [...T],
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const pipelined = client as Pipelined;
  pipelined.pipeline = true;
  try {
    const answers = await Promise.allSettled(send());
    return answers.map((answer) => {
      if (answer.status === "rejected") throw answer.reason;
      return answer.value;
    }) as { -readonly [K in keyof T]: Awaited<T[K]> };
  } finally {
    pipelined.pipeline = false;
  }
}
