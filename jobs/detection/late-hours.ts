import type { Database } from "#db/client.ts";
import type { JudgedHour } from "#db/detection/judged-hours.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import type { SourceMode } from "#model/kinds.ts";
import type { KnownSource, KnownSources } from "#model/known-source.ts";
import type { Routing } from "#stages/alerting/routing/routing.ts";
import type { Sensitivity } from "#stages/detection/detection-settings.ts";
import type { LateNews } from "#stages/detection/late/find-late-news.ts";
import type { LateSpan } from "#stages/detection/late/find-late-span.ts";
import type { FollowedIncident } from "./judge-incidents.ts";
import type { RuleFinding } from "./replay-late.ts";

export interface JudgeLateDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Log;
  readonly zoneIds: readonly number[];
  readonly sensitivity: (zoneId: number, ruleId: string) => Sensitivity;
  readonly lowestFloor: () => number;
  readonly sourceMode: () => SourceMode;
  readonly knownSources: () => readonly KnownSource[];
  readonly settingsOf: (known: string) => string;
  readonly routing: () => Routing;
  /** Called when outbox rows were written. */
  readonly afterAlerts: () => Promise<void>;
}

/** Hours of a zone that were judged late, and what is to be stored of them. */
export interface LateHours {
  readonly zoneId: number;
  readonly span: LateSpan;
  readonly news: LateNews<FollowedIncident, RuleFinding>;
  /** Whether the hours were before the first start: nothing is sent. */
  readonly isHistory: boolean;
  readonly isShadow: boolean;
  readonly known: KnownSources;
  readonly judged: readonly JudgedHour[];
  readonly nowMs: number;
}
