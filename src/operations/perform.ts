import type { z } from "zod";
import type { Queryable } from "#db/client.ts";
import { writeAuditEntry } from "#db/keys/audit-entries.ts";
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
    ? await change(operation, performing, input)
    : await operation.run(performing, input);
  return performing.caller.masked ? maskOutput(operation.output as z.ZodType, output) : output;
}

async function change(
  { run, isLong }: Extract<Operation, { changes: true }>,
  performing: Performing,
  input: unknown,
): Promise<unknown> {
  const work: (() => Promise<unknown>)[] = [];
  const { database } = performing;
  const runIn = async (tx: Queryable) => {
    work.length = 0;
    const { output, audit }: Changed<unknown> = await run(
      { ...performing, tx, afterCommit: (one) => work.push(one) },
      input,
    );
    for (const note of [audit ?? []].flat())
      await writeAuditEntry(tx, { actor: actorOf(performing.caller), ...note });
    return output;
  };
  const changed =
    isLong === true ? await runIn(database.db) : await inTransaction(database, ({ tx }) => runIn(tx));
  for (const one of work) await one();
  return changed;
}
