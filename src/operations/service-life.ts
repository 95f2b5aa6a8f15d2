/** The running service: its settings and its jobs. */

import type { Config, Setting } from "#config/config.ts";
import type { Alerting } from "#config/file/config-file.ts";
import type { RequestBudget } from "#db/ingest/request-budgets.ts";
import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import type { DiskSpace } from "#lib/disk.ts";
import type { Retention } from "#people/rules/retention.ts";

/** How often a process writes that it is alive. */
export const LIFE_SIGN_EVERY_MS = 15_000;

/** Attempts of a job in this process since its start. */
export interface JobRuns {
  readonly job: string;
  /** Runs by outcome: done, retry, give-up, wait. */
  readonly runs: Readonly<Record<string, number>>;
  readonly meanSeconds: number | null;
  /** Epoch ms. */
  readonly lastSuccessAt: number | null;
}

interface ViewedAccount {
  readonly name: string;
  /** Null where only the service knows the address. */
  readonly host: string | null;
  readonly zoneIds: readonly number[];
  readonly budget: RequestBudget;
}

/** The running service as the operations pages show it. Channels are listed by name and kind; the rest of one is secret. */
export interface ServiceView {
  /** Returns the settings of the configuration file that hold now. */
  readonly alerting: () => Alerting;
  /** Returns the names of the channels that hold now; null if this process does not know those of the service. */
  readonly configuredChannels: () => ReadonlySet<string> | null;
  /** The configured zones. */
  readonly zoneIds: readonly number[];
  /** The opened channels of this process. */
  readonly notifiers: ReadonlyMap<string, Notifier>;
  readonly settings: readonly Setting[];
  readonly archive: Pick<Config["archive"], "folder" | "isWritten" | "hotDays"> & {
    /** The bucket's address, null if there is none. */
    readonly bucket: string | null;
  };
  readonly retention: Retention;
  /** Returns the disk space of the embedded Postgres; null for another server. */
  readonly readDisk: () => DiskSpace | null;
  /** The accounts of the platform that this process knows, without their keys. */
  readonly accounts: readonly ViewedAccount[];
  readonly pollEveryMs: number;
  readonly readJobRuns: () => Promise<readonly JobRuns[]>;
}
