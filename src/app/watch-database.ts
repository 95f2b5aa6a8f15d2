import { buildDatabaseMessage, type DatabaseTrouble } from "#alerts/rules/message/self-message.ts";
import type { Config } from "#config/config.ts";
import { createDirectSender } from "#jobs/delivery/send-directly.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import type { StopStack } from "#lib/process.ts";
import type { OpenAlerting } from "./open-alerting.ts";

/** A restart or a failover needs no alert; a longer outage hides attacks. */
const GRACE_MS = 2 * 60_000;
/** The database has to work for this long before the outage is over, because a server may start and fail again. */
const STABLE_MS = 60_000;

/** The reporter: the supervisor of the embedded server, a query every minute, or a job on a full disk. */
export type TroubleSource = "server" | "probe" | "disk";

export interface DatabaseWatchOptions {
  readonly clock: Clock;
  /** Called once per outage that lasts, and once when it is over. Must not need the database. */
  readonly onTrouble: (trouble: DatabaseTrouble) => void;
  readonly onRecovered: (trouble: DatabaseTrouble, atMs: number) => void;
  readonly graceMs?: number;
  readonly stableMs?: number;
}

export interface DatabaseWatch {
  /** A full disk is reported at once, because no restart helps. */
  failed(source: TroubleSource, trouble: { readonly headline: string; readonly isDiskFull: boolean }): void;
  recovered(source: TroubleSource): void;
  stop(): void;
}

interface Seen extends DatabaseTrouble {
  readonly isDiskFull: boolean;
}

const SOURCES = ["server", "disk", "probe"] as const;

/** Decides when a failure of the database needs an alert. Without a failure it has no timer. */
export function createDatabaseWatch(options: DatabaseWatchOptions): DatabaseWatch {
  const { clock, onTrouble, onRecovered, graceMs = GRACE_MS, stableMs = STABLE_MS } = options;
  const seen = new Map<TroubleSource, Seen>();
  let sinceMs: number | null = null;
  let reported: DatabaseTrouble | null = null;
  let timer: NodeJS.Timeout | undefined;

  /** Returns the current trouble. The most precise source comes first. */
  const current = () => SOURCES.flatMap((source) => seen.get(source) ?? [])[0] ?? null;

  function fire(): void {
    const trouble = current();
    if (trouble === null || reported !== null) return;
    reported = { headline: trouble.headline, sinceMs: sinceMs ?? trouble.sinceMs };
    onTrouble(reported);
  }

  function settle(): void {
    if (current() !== null) return;
    sinceMs = null;
    if (reported === null) return;
    const over = reported;
    reported = null;
    onRecovered(over, clock());
  }

  function later(ms: number, run: () => void): void {
    clearTimeout(timer);
    timer = setTimeout(run, Math.max(ms, 0)).unref();
  }

  return {
    failed(source, { headline, isDiskFull }) {
      const nowMs = clock();
      sinceMs ??= nowMs;
      seen.set(source, { headline, isDiskFull, sinceMs: seen.get(source)?.sinceMs ?? nowMs });
      if (isDiskFull) {
        clearTimeout(timer);
        fire();
      } else if (reported === null) later(sinceMs + graceMs - nowMs, fire);
      else clearTimeout(timer);
    },
    recovered(source) {
      if (seen.delete(source) && seen.size === 0) later(stableMs, settle);
    },
    stop: () => clearTimeout(timer),
  };
}

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
