import type { z } from "zod";
import type { Queryable } from "#db/client.ts";
import { writeAuditEntry } from "#db/keys/audit-trail.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { actorOf } from "./caller.ts";
import { maskOutput } from "./masking.ts";
import type { Changed, Changing, Operation } from "./operation.ts";

/** Everything that operations need, without the transaction that `perform` opens for a change. */
export type Performing = Omit<Changing, "tx" | "afterCommit">;

/**
 * Runs an operation for its caller. A change and its audit entry are one transaction. A masked caller gets addresses and
 * free texts masked. The face has validated the input and checked scope and zone.
 */
export async function perform(
  operation: Operation,
  performing: Performing,
  input: unknown,
): Promise<unknown> {
  const output = operation.changes
    ? await makeChange(performing, (changing) => operation.run(changing, input), operation.isLong)
    : await operation.run(performing, input);
  return performing.caller.masked ? maskOutput(operation.output as z.ZodType, output) : output;
}

/**
 * Makes a change and writes its audit entries in one transaction, up to five times if Postgres asks for it. A long change
 * runs outside a transaction.
 */
export async function makeChange<Output>(
  performing: Performing,
  run: (changing: Changing) => Promise<Changed<Output>>,
  isLong = false,
): Promise<Output> {
  const work: (() => Promise<unknown>)[] = [];
  const { database, caller } = performing;
  const runIn = async (tx: Queryable) => {
    work.length = 0;
    const { output, audit } = await run({ ...performing, tx, afterCommit: (one) => work.push(one) });
    for (const note of [audit ?? []].flat()) await writeAuditEntry(tx, { actor: actorOf(caller), ...note });
    return output;
  };
  const made = await (isLong ? runIn(database.db) : inTransaction(database, ({ tx }) => runIn(tx)));
  for (const one of work) await one();
  return made;
}
