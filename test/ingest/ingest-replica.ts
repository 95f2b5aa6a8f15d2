import { flushCompileCache } from "node:module";
import { createDatabase } from "#db/client.ts";
import { createIngestJobs } from "./ingest-jobs.ts";

/**
 * One replica's ingest in a process of its own: node ingest-replica.ts <name> <database> <platform> <key> <now> <job>....
 * Runs the jobs at once and one after another, tells its parent how it went, and ends; also when the parent does.
 */
const [name = "", url = "", platform = "", accessKey = "", now = "", ...only] = process.argv.slice(2);
process.once("disconnect", () => process.exit(0));
// At once: a process that is killed keeps nothing of what it compiled for the next.
flushCompileCache();
const database = createDatabase({ url, max: 6, applicationName: name, onError: () => undefined });
const jobs = createIngestJobs({
  database,
  url: platform,
  accessKey,
  clock: () => Number(now),
  observer: { pageStored: () => undefined },
});
const chosen = [jobs.poll, jobs.walk].filter((_, index) => only.includes(["poll", "walk"][index] ?? ""));
const failures: string[] = [];
for (const round of [chosen, ...chosen.map((job) => [job])]) {
  for (const result of await Promise.allSettled(round.map((job) => job()))) {
    if (result.status === "rejected") failures.push(String((result.reason as { code?: unknown }).code));
  }
}
process.send?.({ failures }, () => process.exit(0));
