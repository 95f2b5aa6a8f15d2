import type { z } from "zod";
import { createOpenedBlocks } from "#archive/rules/records/find-records.ts";
import type { Database } from "#db/client.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import { localCaller } from "#operations/caller.ts";
import { type Change, createPageCursors, type Query } from "#operations/operation.ts";
import { perform } from "#operations/perform.ts";
import { SERVICE } from "../faces/http/default-service.ts";

/** Runs an operation on this database at this time, in the name of a person. The input is as its schema returns it. */
export async function performOn<Input extends z.ZodObject, Output extends z.ZodType>(
  database: Database,
  operation: Query<Input, Output> | Change<Input, Output>,
  input: z.output<Input>,
  { by, now }: { readonly by: string; readonly now: number },
): Promise<z.output<Output>> {
  const performing = {
    caller: localCaller(by),
    db: database.db,
    database,
    now,
    cursors: createPageCursors(Buffer.alloc(32)),
    log: { warn: () => undefined },
    zones: () => ({}),
    service: SERVICE,
    searching: {
      openedBlocks: createOpenedBlocks(1_000_000),
      ocsf: { vendor: null, actions: BUILT_IN_ACTIONS },
      refuseCostly: () => undefined,
      runInPlace: () => Promise.reject(new Error("no search here")),
    },
    signal: new AbortController().signal,
    instanceId: "",
    sessionId: null,
    clock: () => now,
    edge: null,
    enqueue: async () => false,
  };
  return (await perform(operation, performing, input)) as z.output<Output>;
}
