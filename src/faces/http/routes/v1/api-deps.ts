import type { FeedRow } from "#db/alerting/feed-transitions.ts";
import type { SilenceRow } from "#db/alerting/silences.ts";
import type { Database, Queryable } from "#db/client.ts";
import type { AuditEntry } from "#db/keys/audit-entries.ts";
import type { RequestedRun } from "#db/service/requested-runs.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import type { Zones } from "#model/zones.ts";
import type { ActedAlert, ActOnAlerts } from "#operations/act-on-alerts.ts";
import type { MarkResult } from "#operations/mark-alert.ts";
import type { PageCursors } from "#operations/page-cursor.ts";
import type { RunRequest } from "#operations/request-run.ts";
import type { Searching } from "#operations/search/searching.ts";
import type { ServiceView } from "#operations/service-view.ts";
import type { AskedWithdrawal, Withdrawal } from "#operations/withdraw-events.ts";
import type { Matchers } from "#stages/alerting/silence.ts";
import type { RowHub } from "../../feed/row-hub.ts";

interface Act {
  /** Whom people are told of. */
  readonly by: string;
  /** Whom the audit trail names. */
  readonly actor: string;
}

/** Times in epoch ms. */
export interface ApiSilence {
  readonly startsAt: number;
  readonly expiresAt: number;
  readonly matchers: Matchers;
  readonly reason: string;
  readonly createdBy: string;
  readonly alertIds: readonly number[];
  readonly equalIds: readonly number[];
}

type AlertActResult =
  | { readonly kind: "unknown" }
  | { readonly kind: "unchanged"; readonly state: "firing" | "acknowledged" | "resolved" }
  | {
      readonly kind: "done" | "noted";
      readonly state: "firing" | "acknowledged" | "resolved";
      readonly channels: readonly string[];
    };

type ActOnAlert = (
  act: Act & { readonly alertId: number; readonly note: string | null; readonly atMs: number },
) => Promise<AlertActResult>;

type WantedSilence = Act & {
  readonly matchers: Matchers;
  readonly durationMs: number;
  readonly reason: string;
  readonly nowMs: number;
};

/** What the native API changes; each with its audit entry, safe twice and beside itself. */
export interface ApiActs {
  readonly acknowledge: ActOnAlert;
  readonly resolve: ActOnAlert;
  readonly planSilence: (wanted: WantedSilence) => Promise<ApiSilence>;
  readonly addSilence: (wanted: WantedSilence) => Promise<ApiSilence & { readonly id: number }>;
  readonly actOnAlerts: (act: ActOnAlerts & Act) => Promise<ActedAlert[]>;
  readonly extendSilence: (
    extension: Act & { readonly id: number; readonly expiresAtMs: number; readonly nowMs: number },
  ) => Promise<SilenceRow | "over" | "earlier" | "unknown">;
  readonly endSilence: (
    ended: Act & { readonly id: number; readonly nowMs: number },
  ) => Promise<"expired" | "over" | "unknown">;
  readonly mark: (
    act: Act & {
      readonly alertId: number;
      readonly mark: "attack" | "noise";
      readonly note: string | null;
      readonly atMs: number;
    },
  ) => Promise<MarkResult>;
  /** Null if too many runs of the zone are unfinished. */
  readonly requestRun: (
    wanted: RunRequest,
  ) => Promise<{ readonly run: RequestedRun; readonly isNew: boolean } | null>;
  /** Without `by`, nothing is removed. */
  readonly withdrawEvents: (
    asked: AskedWithdrawal,
    by: { readonly actor: string; readonly reason: string } | null,
    signal: AbortSignal,
  ) => Promise<Withdrawal>;
  /** For acts that change no row. */
  readonly audit: (entry: AuditEntry) => Promise<void>;
}

export interface ApiDeps {
  readonly service: ServiceView;
  readonly searching: Searching;
  readonly log: Pick<Log, "warn">;
  /** The pool for questions of clients. */
  readonly archive: Queryable;
  /** The pool for changes. */
  readonly database: Database;
  /** Hands work to a job now. */
  readonly enqueue: (job: string, payload: Record<string, unknown>) => Promise<boolean>;
  readonly clock: Clock;
  readonly cursors: PageCursors;
  readonly acts: ApiActs;
  readonly hub: RowHub<FeedRow>;
  /** Names and labels of zones as they are now. */
  readonly zones: () => Zones;
  /** The same on all replicas of this installation, and on no other. */
  readonly instanceId: string;
  /** Of a stream without events. Default 15 s. */
  readonly heartbeatMs?: number;
  /** At once, of one key in one process. Default 5. */
  readonly streamsPerKey?: number;
}
