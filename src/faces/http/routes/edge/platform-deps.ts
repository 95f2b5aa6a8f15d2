import type { Database } from "#db/client.ts";
import type { Clock } from "#lib/clock.ts";
import type { PageCursors } from "#operations/page-cursor.ts";
import type { Searching } from "#operations/search/searching.ts";
import type { AuditExport } from "../../keys/audit-export.ts";

/** What an ask of the platform came to, or why nobody asked. */
export type AskedAdvice =
  | { readonly kind: "answered"; readonly text: string }
  /** The key as it is stored: the platform's own, or one of this service's in capitals. */
  | { readonly kind: "failed"; readonly errorKey: string }
  /** The hour's budget is spent, or a refusal is in force, or somebody else asks at this moment. */
  | { readonly kind: "not-now" };

export type AskAdvice = (rule: { zoneId: number; ruleId: string }) => Promise<AskedAdvice>;

export interface PlatformDeps extends Searching {
  /** For counts and keys. Events are read in a place of the admission queue only. */
  readonly archive: Database;
  readonly cursors: PageCursors;
  readonly clock: Clock;
  /** The zones that are copied. */
  readonly zoneIds: readonly number[];
  readonly retentionDays: number;
  readonly auditExport: AuditExport;
  /** How often an export asks whether its key is still good. Default 10 s. */
  readonly checkKeyEveryMs?: number;
  /** Null where nobody may be asked on a client's behalf. */
  readonly askAdvice: AskAdvice | null;
}
