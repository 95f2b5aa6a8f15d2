import { flushCompileCache } from "node:module";
import type { Database } from "#db/client.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { createReplica } from "./replica.ts";

/**
 * Runs one replica until a named point: node crash-child.ts <database> <platform> <key> <now> <job> <point>. It runs
 * the named job and those after it in pipeline order, and kills itself, as kill -9 does, when the named job reaches the
 * point. It tells its parent of every message that it sends.
 * Points: before and after an "ask" of the platform, a "write" (one statement), a "commit", a "send" of a message.
 */
const [databaseUrl = "", platformUrl = "", accessKey = "", now = "", job = "", point = ""] =
  process.argv.slice(2);
process.once("disconnect", () => process.exit(0));
// Flushed at once, because a killed process would lose its compiled code for the next one.
flushCompileCache();

let current = "";
function reach(here: string): void {
  if (current === job && here === point) process.kill(process.pid, "SIGKILL");
}

function wrapEdge(edge: EdgeClient): EdgeClient {
  const wrapped = Object.entries(edge).map(([name, call]) => [
    name,
    async (...args: unknown[]) => {
      reach("before ask");
      const answer: unknown = await (call as (...args: unknown[]) => Promise<unknown>)(...args);
      reach("after ask");
      return answer;
    },
  ]);
  return Object.fromEntries(wrapped) as EdgeClient;
}

function wrapDatabase(database: Database): Database {
  database.pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    client.query = ((...args: unknown[]) => {
      const [asked] = args as [string | { text?: string }];
      const text = (typeof asked === "string" ? asked : asked.text) ?? "";
      const what =
        text === "commit" ? "commit" : /^\s*(insert|update|delete|with)/i.test(text) ? "write" : null;
      if (what === null) return query(...args);
      reach(`before ${what}`);
      const told = args.at(-1);
      if (typeof told === "function") {
        const answer = (...answers: unknown[]) => {
          reach(`after ${what}`);
          (told as (...answers: unknown[]) => void)(...answers);
        };
        return query(...args.slice(0, -1), answer);
      }
      const done = query(...args);
      return done instanceof Promise ? done.finally(() => reach(`after ${what}`)) : done;
    }) as typeof client.query;
  });
  return database;
}

const replica = createReplica({
  databaseUrl,
  platformUrl,
  accessKey,
  clock: () => Number(now),
  name: "crash child",
  wrapEdge,
  wrapDatabase,
  onMessage: (message) => {
    reach("before send");
    process.send?.({ sent: `${message.alertId} ${message.transition}` });
    reach("after send");
  },
});
// A job that an earlier death has left in disorder may fail. The next life runs it again.
for (current of replica.jobNames.slice(replica.jobNames.indexOf(job)))
  await replica.run(current).catch(() => undefined);
process.exit(0);
