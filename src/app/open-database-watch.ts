import type { Config } from "#config/config.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import type { StopStack } from "#lib/stop-stack.ts";
import { buildDatabaseMessage } from "#stages/alerting/self/database-alert.ts";
import type { OpenAlerting } from "./open-alerting.ts";
import { createDirectSender } from "./send-directly.ts";
import { createDatabaseWatch, type DatabaseWatch } from "./watch-database.ts";

/** Watches the database. A process that delivers alerts sends the alert about it itself, without the outbox. */
export function openDatabaseWatch(
  parts: {
    readonly config: Pick<Config, "roles">;
    readonly alerting: Pick<OpenAlerting, "notifiers" | "routing">;
    readonly clock: Clock;
    readonly log: Log;
  },
  stack: StopStack,
): DatabaseWatch {
  const { config, alerting, clock, log } = parts;
  const sender = config.roles.includes("alerts") ? createDirectSender({ ...alerting, clock, log }) : null;
  const watch = createDatabaseWatch({
    clock,
    onTrouble(trouble) {
      log.error({ headline: trouble.headline }, "database failed");
      sender?.open(buildDatabaseMessage(trouble, null));
    },
    onRecovered(trouble, atMs) {
      log.info({ downMs: atMs - trouble.sinceMs }, "database recovered");
      sender?.close(buildDatabaseMessage(trouble, atMs));
    },
  });
  stack.defer("database watch", () => {
    watch.stop();
    sender?.stop();
  });
  return watch;
}
