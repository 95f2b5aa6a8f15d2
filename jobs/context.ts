/** The dependencies that several jobs share. Each job takes the members that it uses. */

import type { Routing } from "#alerts/rules/routing/routing.ts";
import type { Database } from "#db/client.ts";
import type { ErasureGuard } from "#db/ingest/guard-page.ts";
import type { PartitionKeeper } from "#db/postgres/partitions.ts";
import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import type { Sensitivity } from "#detection/rules/detection-settings.ts";
import type { IngestObserver } from "#ingest/rules/read-page.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import type { ActionStates } from "#model/action-class.ts";
import type { CustomCondition } from "#model/custom-condition.ts";
import type { SourceMode } from "#model/kinds.ts";
import type { KnownSource } from "#model/known-source.ts";
import type { PseudonymKey } from "#people/rules/pseudonym.ts";

export interface JobContext {
  readonly database: Database;
  readonly partitions: PartitionKeeper;
  readonly clock: Clock;
  readonly log: Log;
  /** The configured zones. */
  readonly zoneIds: readonly number[];
  /** Keeps erased data from being stored again. */
  readonly erasures: ErasureGuard;
  readonly observer: IngestObserver;
  /** @throws {PseudonymKeyError} if this process lacks the key in use. */
  readonly openKey: () => Promise<PseudonymKey>;
  /** Reads from actions whether requests were stopped, by the words of the configuration at the start. */
  readonly actions: ActionStates;
  /** Returns the current configuration of routes and sensitivity, which may change while the service runs. */
  readonly routing: () => Routing;
  /** The notifiers by channel name. */
  readonly notifiers: ReadonlyMap<string, Notifier>;
  readonly sensitivity: (zoneId: number, ruleId: string) => Sensitivity;
  readonly lowestFloor: () => number;
  /** Returns the configured mode, which may change while the service runs. */
  readonly sourceMode: () => SourceMode;
  /** Returns the known sources of the configuration file. The database holds others. */
  readonly knownSources: () => readonly KnownSource[];
  /** Returns the custom conditions of the configuration file. The database holds others. */
  readonly conditions: () => readonly CustomCondition[];
  /** Names the settings of the detectors, together with the fingerprint of a zone's known sources. */
  readonly settingsOf: (known: string) => string;
  readonly pollEveryMs: number;
  /** How long after its time an event may still appear. */
  readonly settleMs: number;
  /** Length of the time before the last search that every poll reads again. */
  readonly overlapMs: number;
  /** Called after each batch of events that was stored. */
  readonly afterPage: () => unknown;
  /** Called when a spike opened, changed or closed. */
  readonly afterSpikes: () => unknown;
  /** Called when outbox rows were written. */
  readonly afterAlerts: () => Promise<void>;
}
