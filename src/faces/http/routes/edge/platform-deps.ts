import type { Database } from "#db/client.ts";
import type { Clock } from "#lib/clock.ts";
import type { PageCursors } from "#operations/page-cursor.ts";
import type { Searching } from "#operations/search/searching.ts";
import type { AuditExport } from "../../keys/audit-export.ts";

/** The outcome of a request for advice, or the reason why the platform was not asked. */
export type AskedAdvice =
  | { readonly kind: "answered"; readonly text: string }
  /** The stored key: the platform's own, or one of this service's in capitals. */
  | { readonly kind: "failed"; readonly errorKey: string }
  /** The budget of the hour is used up, a refusal is in force, or another process is asking. */
  | { readonly kind: "not-now" };

export type AskAdvice = (rule: { zoneId: number; ruleId: string }) => Promise<AskedAdvice>;

export interface PlatformDeps extends Searching {
  /** Used for counts and keys. Events are read only in a place of the admission queue. */
  readonly queries: Database;
  readonly cursors: PageCursors;
  readonly clock: Clock;
  /** The zones that are copied. */
  readonly zoneIds: readonly number[];
  readonly retentionDays: number;
  readonly auditExport: AuditExport;
  /** Interval at which an export checks that its key is still valid. Default 10 s. */
  readonly checkKeyEveryMs?: number;
  /** Null if the platform may not be asked for a client. */
  readonly askAdvice: AskAdvice | null;
}
