import type { ServiceView } from "#operations/service-view.ts";
import type { AuditExport } from "../../keys/audit-export.ts";
import type { OperationParts } from "../../operations.ts";

/** The outcome of a request for advice, or the reason why the platform was not asked. */
export type AskedAdvice =
  | { readonly kind: "answered"; readonly text: string }
  /** The stored key: the platform's own, or one of this service's in capitals. */
  | { readonly kind: "failed"; readonly errorKey: string }
  /** The budget of the hour is used up, a refusal is in force, or another process is asking. */
  | { readonly kind: "not-now" };

export type AskAdvice = (rule: { zoneId: number; ruleId: string }) => Promise<AskedAdvice>;

/** The parts of operations, and those of the platform's own routes. */
export interface PlatformDeps extends Pick<OperationParts, "clock" | "cursors" | "db" | "searching"> {
  readonly service: Pick<ServiceView, "retention" | "zoneIds">;
  readonly auditExport: AuditExport;
  /** Interval at which an export checks that its key is still valid. Default 10 s. */
  readonly checkKeyEveryMs?: number;
  /** Null if the platform may not be asked for a client. */
  readonly askAdvice: AskAdvice | null;
}
