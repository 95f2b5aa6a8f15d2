import { pino } from "pino";
import { createDatabase } from "#db/client.ts";
import { createDeliverAlertsJob } from "#jobs/delivery/deliver-alerts.ts";
import { webhooksOf } from "./deliver-world.ts";

/** One run of deliver-alerts in a process of its own, for tests that kill it: `<database url> <receiver url> <channel>`. */
const [databaseUrl = "", receiverUrl = "", channel = ""] = process.argv.slice(2);
const database = createDatabase({
  url: databaseUrl,
  max: 2,
  applicationName: "deliver process",
  onError() {},
});
await createDeliverAlertsJob({
  database,
  notifiers: webhooksOf(receiverUrl, [channel]),
  log: pino({ level: "silent" }),
}).run({} as never, new AbortController().signal);
