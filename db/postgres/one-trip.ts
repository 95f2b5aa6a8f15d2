import type pg from "pg";

/** pg's own switch for sending without waiting, which its types do not name yet. */
type Pipelined = pg.PoolClient & { pipeline: boolean };

/**
 * Runs the statements that `send` starts, in their order, in one round trip instead of one each: every wait for an
 * answer is time in which this transaction holds locks and does nothing. Nothing else may use the connection meanwhile,
 * and no COPY may be among them. Once one fails Postgres refuses those behind it; the first failure is thrown when all
 * are answered.
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
