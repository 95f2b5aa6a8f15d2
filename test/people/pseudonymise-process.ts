import pino from "pino";
import { createDatabase } from "#db/client.ts";
import { createPseudonymiseIpsJob } from "#jobs/people/pseudonymise-ips.ts";
import { createSecret } from "#lib/secret.ts";
import { createPseudonymKey } from "#people/rules/pseudonym.ts";

/** One run of pseudonymise-ips in a process of its own: node pseudonymise-process.ts <database> <key> <now>. */
const [url = "", keyText = "", now = ""] = process.argv.slice(2);
process.once("disconnect", () => process.exit(0));
const database = createDatabase({ url, max: 2, applicationName: "pseudonymise", onError: () => undefined });
const key = createPseudonymKey(createSecret(keyText));
const job = createPseudonymiseIpsJob({
  database,
  clock: () => Number(now),
  log: pino({ level: "silent" }),
  ipDays: 90,
  openKey: () => Promise.resolve(key),
});
await job.run({} as never, new AbortController().signal);
await database.close();
process.send?.("done", () => process.exit(0));
